"""Checking the value of a publication file against the model, and saying what is wrong in the file's own words."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from contexture.publications import explanations
from contexture.publications.findings import Finding, FindingsError, Location
from contexture.publications.publication import Publication

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Stands in for what is missing or wrong, so that the rest can still be checked together.
_STAND_IN: Mapping[str, object] = {
    "name": "stand-in",
    "source": {"kind": "ngsi", "connection": "stand_in", "service": "stand_in"},
}


def validate(data: object) -> tuple[Publication | None, list[Finding]]:
    """The publication, or None and every reason against it."""
    if not isinstance(data, Mapping):
        return None, [Finding((), _not_a_mapping(data), "expected `key: value` lines, beginning with `name:`")]
    try:
        return Publication.model_validate(data), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    findings = list(_findings(details))
    wrong = [tuple(detail["loc"]) for detail in details if detail["loc"]]
    return None, [*findings, *_of_the_rest(data, wrong)] if wrong else findings


def _not_a_mapping(data: object) -> str:
    return "the file is empty" if data is None else "a publication is not a list or a single value"


def _findings(details: list[ErrorDetails]) -> Iterator[Finding]:
    for detail in details:
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, FindingsError):
            yield from _once_for_each_place(cause.findings)
        else:
            yield explanations.explain(detail)


def _once_for_each_place(findings: tuple[Finding, ...]) -> Iterator[Finding]:
    # What is impossible for ever comes first and matters more than that it isn't supported yet.
    seen: set[Location] = set()
    for finding in findings:
        if finding.location not in seen or not finding.message.startswith("not yet supported"):
            yield finding
        seen.add(finding.location)


def _of_the_rest(data: Mapping[str, Any], wrong: list[Location]) -> list[Finding]:
    """Findings about the keys that are right, found by leaving out those that are wrong."""
    try:
        Publication.model_validate(_without(data, wrong))
    except ValidationError as error:
        found = _findings(error.errors(include_url=False))
        return [finding for finding in found if not _touches(finding, wrong)]
    return []


def _without(data: Mapping[str, Any], wrong: list[Location]) -> dict[str, Any]:
    rest = copy.deepcopy(dict(data))
    for location in wrong:
        section = rest.get(str(location[0]))
        if len(location) > 1 and isinstance(section, dict):
            section.pop(location[1], None)
        else:
            rest.pop(str(location[0]), None)
    rest.setdefault("name", _STAND_IN["name"])
    source = rest.setdefault("source", {})
    for key, value in _STAND_IN["source"].items():  # type: ignore[attr-defined]
        if isinstance(source, dict) and not (key == "service" and source.get("kind") == "sdmx"):
            source.setdefault(key, value)
    return rest


def _touches(finding: Finding, wrong: list[Location]) -> bool:
    places = (finding.location, *finding.involves)
    return any(_overlap(place, location[:2]) for place in places for location in wrong)


def _overlap(one: Location, other: Location) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]
