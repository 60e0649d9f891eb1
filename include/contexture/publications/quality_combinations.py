"""What `quality` may say of each kind of source: its rules, and the frames and columns of expectations."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from contexture.publications.findings import Finding
from contexture.publications.rule_names import ENTITY_RULES, STRUCTURE_RULES

if TYPE_CHECKING:
    from pydantic import JsonValue

    from contexture.publications.publication import Publication

Findings = Iterator[Finding]

STRUCTURE_COLUMNS: Mapping[str, str] = {
    "urn": "string",
    "kind": "string",
    "agency": "string",
    "id": "string",
    "version": "string",
    "declared_urn": "string",
    "source_transaction": "bigint",
    "modified_at": "timestamp",
    "size": "bigint",
    "reference_count": "int",
    "is_final": "boolean",
    "topics": "string",
    "warnings": "string",
    "transcoded_from": "string",
    "lost": "string",
}
"""Columns of the frame `structures`, with their types in Spark. `topics` and `warnings` are lists with commas; the last
two are null where nothing was converted, or lost."""

COLUMN_ARGUMENTS = ("column", "column_A", "column_B", "column_list", "column_set")
"""Arguments of expectations that name columns."""

_KIND = (("source", "kind"),)
_WITHOUT_CHOICE = {
    "unreadable": "there is nothing that could be published",
    "one-structure": "a record has the URN of one structure for its key",
    "urn-missing": "its URN is the key of a record",
    "topic-name": "Kafka takes no such name",
}


def _rules(publication: Publication) -> Findings:
    of_structures = publication.source.kind == "sdmx"
    names, other, subject = (
        (STRUCTURE_RULES, "ngsi", "entities") if of_structures else (ENTITY_RULES, "sdmx", "structures")
    )
    for rule in publication.quality.rules:
        if rule not in names:
            near = difflib.get_close_matches(rule, names, n=1)
            hint = f"leave it out, or did you mean {near[0]!r}?" if near else "leave it out"
            message = f"`{rule}` is a rule about {subject}, and needs `kind: {other}`"
            yield Finding(("quality", "rules", rule), message, hint, _KIND, at_key=True)


def _rules_without_choice(publication: Publication) -> Findings:
    if publication.source.kind != "sdmx":
        return
    for rule, severity in publication.quality.rules.items():
        if rule in _WITHOUT_CHOICE and severity != "error":
            message = f"`{rule}: {severity}`: {_WITHOUT_CHOICE[rule]}"
            yield Finding(("quality", "rules", rule), message, "leave it out: it is always an error")


def _frames(publication: Publication) -> Findings:
    is_of_structures = publication.source.kind == "sdmx"
    for number, expectation in enumerate(publication.quality.expectations):
        if (expectation.on == "structures") == is_of_structures:
            continue
        needed, frame = ("ngsi", "structures") if is_of_structures else ("sdmx", "entities")
        message = f"`on: {expectation.on}` needs `kind: {needed}`"
        yield Finding(("quality", "expectations", number, "on"), message, f"write `on: {frame}`", _KIND)


def _columns(publication: Publication) -> Findings:
    for number, expectation in enumerate(publication.quality.expectations):
        if expectation.on == "structures":
            for column in written_columns(expectation.kwargs):
                if column not in STRUCTURE_COLUMNS:
                    near = difflib.get_close_matches(column, STRUCTURE_COLUMNS, n=1)
                    hint = f"did you mean {near[0]!r}? " if near else ""
                    yield Finding(
                        ("quality", "expectations", number, "kwargs"),
                        f"the frame of structures has no column {column!r}",
                        f"{hint}there are {', '.join(STRUCTURE_COLUMNS)}",
                    )


def written_columns(kwargs: Mapping[str, JsonValue]) -> Iterator[str]:
    """The columns that the arguments of an expectation name."""
    for argument in COLUMN_ARGUMENTS:
        value = kwargs.get(argument)
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))


QUALITY_CHECKS: tuple[Callable[[Publication], Findings], ...] = (_rules, _rules_without_choice, _frames, _columns)
