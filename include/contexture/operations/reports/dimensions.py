"""The score of a run in each dimension of data quality, from the rules and expectations that it was checked by.

A score is the share of the checks of a dimension that passed, each with the same weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from contexture.operations.reports.model import Dimension, DimensionScore, RunReport
from contexture.publications import NgsiPublication, Publication, SdmxPublication
from contexture.publications.quality import class_name
from contexture.sources.ngsi.rules import catalogue as of_entities
from contexture.sources.sdmx.rules import catalogue as of_structures

DIMENSIONS: Final[tuple[Dimension, ...]] = ("completeness", "validity", "uniqueness", "timeliness", "volume")

_RULES: Final = """
    completeness: id-missing type-missing null-value required-attr relationship-target urn-missing
    completeness: dangling-reference transcoding-loss
    validity: body id-type id-syntax type-syntax attr-syntax attr-shape shadowed-builtin number-string
    validity: number-precision bool-string datetime datetime-range geojson null-island geo-legacy
    validity: unknown-type unknown-attr attr-type range enum model forbidden-char nesting size
    validity: topic-length type-drift unreadable one-structure identity urn-agreement unknown-kind
    validity: schema topic-name version-order final-content
    uniqueness: duplicate dup-across-paths duplicate-item
    timeliness: stale future-modified
    volume: count-mismatch count-drop count-zero
"""
_EXPECTATIONS: Final = """
    completeness: id-present type-present required-attribute urn-present kind-present
    completeness: accepted-share archive whole-archive
    validity: known-type service-path topic-name attribute-type range quarantined-share
    validity: selected-agency selected-kind known-kind version-syntax
    uniqueness: unique-identity unique-urn
    timeliness: not-in-the-future freshness
    volume: volume
"""
_OWN: Final = """
    completeness: ColumnValuesToNotBeNull ColumnProportionOfNonNullValuesToBeBetween ColumnToExist
    completeness: TableColumnsToMatchSet TableColumnsToMatchOrderedList
    completeness: ColumnDistinctValuesToContainSet
    uniqueness: ColumnValuesToBeUnique CompoundColumnsToBeUnique
    uniqueness: SelectColumnValuesToBeUniqueWithinRecord MulticolumnValuesToBeUnique
    uniqueness: ColumnProportionOfUniqueValuesToBeBetween ColumnUniqueValueCountToBeBetween
    volume: TableRowCountToBeBetween TableRowCountToEqual TableRowCountToEqualOtherTable
"""
"""Expectations of the publication's author by what they check; all others are about validity."""


def _by_name(table: str) -> Mapping[str, Dimension]:
    lines = [line.split() for line in table.strip().splitlines()]
    known = {f"{dimension}:": dimension for dimension in DIMENSIONS}
    return MappingProxyType({name: known[dimension] for dimension, *names in lines for name in names})


RULES: Final = _by_name(_RULES)
EXPECTATIONS: Final = _by_name(_EXPECTATIONS)
OWN_EXPECTATIONS: Final = _by_name(_OWN)


def dimension_of(check: str) -> Dimension | None:
    """Returns the dimension of a rule or an expectation by its name; None where the tables do not have it."""
    kind, _, rest = check.partition(":")
    if kind.startswith("own-"):
        return OWN_EXPECTATIONS.get(class_name(rest).removeprefix("Expect"), "validity")
    return EXPECTATIONS.get(kind) or RULES.get(kind)


def score_dimensions(run: RunReport, publication: Publication | None) -> tuple[DimensionScore, ...]:
    """Returns the scores of a run; `publication` is as the run had it, None where that is no longer stored."""
    checks = {f"rule {name}": name for name in checked_rules(run, publication)}
    failing = {f"rule {each.rule}": each.rule for each in run.rules}
    checks |= failing
    for each in run.expectations:
        # A rule that is an expectation as well is one check, and the expectation knows what is tolerated.
        checks.pop(f"rule {each.name}", None)
        failing.pop(f"rule {each.name}", None)
        checks[f"expectation {each.name}"] = each.name
        if not each.success:
            failing[f"expectation {each.name}"] = each.name
    return tuple(_score(dimension, checks, failing) for dimension in DIMENSIONS)


def _score(dimension: Dimension, checks: Mapping[str, str], failing: Mapping[str, str]) -> DimensionScore:
    measured = sum(dimension_of(name) == dimension for name in checks.values())
    broken = tuple(sorted(name for name in failing.values() if dimension_of(name) == dimension))
    passed = measured - len(broken)
    return DimensionScore(
        dimension=dimension,
        percent=round(100 * passed / measured, 1) if measured else None,
        passed=passed,
        checks=measured,
        failed=broken,
    )


def checked_rules(run: RunReport, publication: Publication | None) -> frozenset[str]:
    """Returns the rules that could be broken in a run: those that are on, have what they need, and fit its mode."""
    if run.mode == "backfill":
        # Its records were checked before they were archived.
        return frozenset()
    if isinstance(publication, NgsiPublication):
        rules, active = of_entities.RULES, of_entities.severities(publication.quality.rules)
        idle = _idle_entity_rules(publication)
    elif isinstance(publication, SdmxPublication):
        rules, active = of_structures.RULES, of_structures.severities(publication.quality.rules)
        idle = frozenset() if publication.message.allow_lossy else frozenset({"transcoding-loss"})
    else:
        return frozenset()
    if run.in_source is None:
        idle |= {"count-mismatch", "count-zero"}
    return frozenset(
        rule.name
        for rule in rules
        # Only a full run sees the whole of what the source has.
        if rule.name in active and rule.name not in idle and (run.mode == "full" or rule.scope != "snapshot")
    )


def _idle_entity_rules(publication: NgsiPublication) -> frozenset[str]:
    """Returns the rules that nothing can break, because the publication does not say what they need."""
    quality = publication.quality
    needs = {
        "required-attr": quality.required_attributes,
        "attr-type": quality.attribute_types,
        "range": quality.ranges,
        "enum": quality.allowed_values,
        "model": quality.models,
        "unknown-type": publication.source.types,
        "stale": quality.fresh_within_seconds or quality.stale_after_seconds,
    }
    return frozenset(rule for rule, needed in needs.items() if not needed)
