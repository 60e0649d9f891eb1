"""The checks of one structure: every rule that it alone can break."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from contexture.events.rules import Findings, Violation, named
from contexture.sdmx.artefact import Artefact
from contexture.sdmx.errors import StructureMessageError
from contexture.sdmx.findings import Finding
from contexture.sdmx.rules.identity import check_identity
from contexture.sdmx.rules.items import repeated_ids
from contexture.sdmx.rules.options import RuleOptions
from contexture.sdmx.validation import SchemaValidator

_DEFAULTS = RuleOptions()
_NAMES_SHOWN = 2


def check(artefact: Artefact, options: RuleOptions = _DEFAULTS) -> list[Violation]:
    """The rules that a structure breaks, in a fixed order.

    Args:
        artefact: the structure, as `split` gives it.
        options: the publication's settings.
    """
    found = Findings(options.severities)
    check_identity(artefact, found)
    if found.wants("schema"):
        _check_schema(artefact, options, found)
    if found.wants("duplicate-item") and artefact.size <= options.largest_items_bytes:
        _check_items(artefact, found)
    return found.violations


def unreadable(error: StructureMessageError) -> list[Violation]:
    """The rule that a body breaks which can't be taken apart: an error, for there is nothing to publish."""
    return [Violation("unreadable", "error", error.message)]


def check_alone(artefacts: Sequence[Artefact]) -> list[Violation]:
    """The rule that a body breaks which holds no structure, or more than the one that its record can have a key for.

    Args:
        artefacts: what one body holds; of several, the first two will do.
    """
    if len(artefacts) == 1:
        return []
    if not artefacts:
        return [Violation("unreadable", "error", "the message holds no structure")]
    return [Violation("one-structure", "error", "the body holds more than one structure")]


def _check_schema(artefact: Artefact, options: RuleOptions, found: Findings) -> None:
    known = len(artefact.findings)
    told = _schemas(options.largest_ml_bytes, options.largest_json_bytes).marked(artefact).findings[known:]
    invalid = [finding for finding in told if finding.code == "invalid"]
    if invalid:
        found.add("schema", _first_of(invalid))


def _first_of(invalid: Sequence[Finding]) -> str:
    more = len(invalid) - 1
    return invalid[0].message + (f" (and {more} more)" if more else "")


def _check_items(artefact: Artefact, found: Findings) -> None:
    repeated = list(dict.fromkeys(repeated_ids(artefact)))
    if repeated:
        names = ", ".join(map(named, repeated[:_NAMES_SHOWN]))
        more = f" and {len(repeated) - _NAMES_SHOWN} more" if len(repeated) > _NAMES_SHOWN else ""
        found.add("duplicate-item", f"more than one item in one place has the id {names}{more}")


@lru_cache(4)
def _schemas(largest_ml_bytes: int, largest_json_bytes: int) -> SchemaValidator:
    # A schema takes a second to load, and each process checks thousands of structures. No structure is at fault for its
    # header.
    return SchemaValidator(largest_ml_bytes=largest_ml_bytes, largest_json_bytes=largest_json_bytes, with_header=False)
