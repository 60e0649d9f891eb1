"""What `quality` may say of each kind of source: its rules, and the frames and columns of expectations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from contexture.publications.checks.records import Findings
from contexture.publications.problems import ModelProblem
from contexture.publications.quality import ARGUMENTS, COMMON, ENTITY_RULES, STRUCTURE_RULES, class_name

if TYPE_CHECKING:
    from pydantic import JsonValue

    from contexture.publications.publication import NgsiPublication, Publication, SdmxPublication
    from contexture.publications.quality import Expectation

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

ENTITY_COLUMNS = ("identity", "service", "service_path", "id", "type", "modified_at", "received_at", "topic")
"""Columns of the frame `entities`; each attribute adds `value_<name>`, its number, and `type_<name>`."""

AGE_COLUMN = "seconds_ahead"
"""A column of all frames with `modified_at`: how far ahead of the run it is."""

ATTRIBUTE_COLUMNS: Mapping[str, str] = {
    "identity": "string",
    "service": "string",
    "service_path": "string",
    "id": "string",
    "type": "string",
    "attribute": "string",
    "dataset_id": "string",
    "attribute_type": "string",
    "number": "double",
    "text": "string",
    "modified_at": "timestamp",
    "received_at": "timestamp",
}
"""Columns of the frame `attributes`, with their types in Spark: a row for each attribute of each accepted entity.
`type` is the entity's; `number` and `text` are the value where it is one, and null else."""

COLUMN_ARGUMENTS = ("column", "column_A", "column_B", "column_list", "column_set")
"""Arguments of expectations that name columns."""

_KIND = (("source", "kind"),)
_OF_ATTRIBUTE = ("value_", "type_")
_KNOWN_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "entities": (*ENTITY_COLUMNS, AGE_COLUMN),
    "attributes": (*ATTRIBUTE_COLUMNS, AGE_COLUMN),
    "structures": (*STRUCTURE_COLUMNS, AGE_COLUMN),
}
_WITHOUT_CHOICE = {
    "unreadable": "there is nothing that could be published",
    "one-structure": "a record has the URN of one structure for its key",
    "urn-missing": "its URN is the key of a record",
    "topic-name": "Kafka accepts no such name",
}


def _rules_of_entities(publication: NgsiPublication) -> Findings:
    return _rules(publication, ENTITY_RULES, "`{}` is a rule about structures, and needs `kind: sdmx`")


def _rules_of_structures(publication: SdmxPublication) -> Findings:
    return _rules(publication, STRUCTURE_RULES, "`{}` is a rule about entities, and needs `kind: ngsi`")


def _rules(publication: Publication, names: tuple[str, ...], refusal: str) -> Findings:
    for rule in publication.quality.rules:
        if rule not in names:
            near = difflib.get_close_matches(rule, names, n=1)
            hint = f"leave it out, or did you mean {near[0]!r}?" if near else "leave it out"
            yield ModelProblem(("quality", "rules", rule), refusal.format(rule), hint, _KIND, at_key=True)


def _rules_without_choice(publication: SdmxPublication) -> Findings:
    for rule, severity in publication.quality.rules.items():
        if rule in _WITHOUT_CHOICE and severity != "error":
            message = f"`{rule}: {severity}`: {_WITHOUT_CHOICE[rule]}"
            yield ModelProblem(("quality", "rules", rule), message, "leave it out: it is always an error")


def _frames_of_entities(publication: NgsiPublication) -> Findings:
    return _frames(publication, ("entities", "attributes"), "sdmx")


def _frames_of_structures(publication: SdmxPublication) -> Findings:
    return _frames(publication, ("structures",), "ngsi")


def _frames(publication: Publication, frames: tuple[str, ...], other_kind: str) -> Findings:
    """Findings about the frames of expectations, and about the columns in them."""
    for number, expectation in enumerate(publication.quality.expectations):
        if expectation.on in frames:
            yield from _columns(expectation, number)
        else:
            message = f"`on: {expectation.on}` needs `kind: {other_kind}`"
            yield ModelProblem(("quality", "expectations", number, "on"), message, f"write `on: {frames[0]}`", _KIND)


def _columns(expectation: Expectation, number: int) -> Findings:
    known = _KNOWN_COLUMNS[expectation.on]
    for column in written_columns(expectation.kwargs):
        if column not in known and not (expectation.on == "entities" and column.startswith(_OF_ATTRIBUTE)):
            yield ModelProblem(
                ("quality", "expectations", number, "kwargs"),
                f"the frame of {expectation.on} has no column {column!r}",
                f"{_nearest(column, known)}there are {', '.join(known)}"
                + (", and value_NAME and type_NAME of each attribute" if expectation.on == "entities" else ""),
            )


def _names(publication: Publication) -> Findings:
    for number, expectation in enumerate(publication.quality.expectations):
        where, kind = ("quality", "expectations", number), class_name(expectation.name)
        if kind not in ARGUMENTS:
            near = _nearest(kind, tuple(ARGUMENTS))
            hint = f"{near}they are listed in the documentation of Great Expectations"
            yield ModelProblem((*where, "name"), f"Great Expectations has no {kind}", hint)
            continue
        needed, further = ARGUMENTS[kind]
        for argument in sorted(needed - expectation.kwargs.keys()):
            yield ModelProblem(where, f"{kind} needs the argument `{argument}`", f"add `{argument}` to kwargs")
        for argument in expectation.kwargs:
            if argument not in needed | further | COMMON:
                hint = (
                    f"{_nearest(argument, (*needed, *further))}it takes {', '.join(sorted(needed | further | COMMON))}"
                )
                yield ModelProblem(
                    (*where, "kwargs", argument), f"{kind} has no argument `{argument}`", hint, at_key=True
                )


def _conditions(publication: Publication) -> Findings:
    for number, expectation in enumerate(publication.quality.expectations):
        if expectation.where is not None and (problem := _unbalanced(expectation.where)):
            yield ModelProblem(
                ("quality", "expectations", number, "where"),
                f"`where` is not an SQL condition: {problem}",
                "write what could follow on WHERE, such as type = 'car' AND value_speed > 0",
            )


def _unbalanced(condition: str) -> str:
    """Returns what is left open in a condition; Spark finds the other errors when it evaluates it."""
    bare = re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", "", condition)
    if any(quote in bare for quote in "'\"`"):
        return "a quote is not closed"
    depth = 0
    for sign in bare:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth < 0:
            break
    return "a parenthesis is not closed, or closed too often" if depth else ""


def _nearest(written: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(written, list(known), n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def written_columns(kwargs: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yields the columns that the arguments of an expectation name."""
    for argument in COLUMN_ARGUMENTS:
        value = kwargs.get(argument)
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))


_OF_ALL: tuple[Callable[[Publication], Findings], ...] = (_names, _conditions)
QUALITY_OF_ENTITIES: tuple[Callable[[NgsiPublication], Findings], ...] = (
    _rules_of_entities,
    _frames_of_entities,
    *_OF_ALL,
)
QUALITY_OF_STRUCTURES: tuple[Callable[[SdmxPublication], Findings], ...] = (
    _rules_of_structures,
    _rules_without_choice,
    _frames_of_structures,
    *_OF_ALL,
)
