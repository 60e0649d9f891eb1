"""A structure query as it is asked by URL, in version 1 or 2 of SDMX-REST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from contexture.sources.sdmx.urn import PACKAGES
from contexture.sources.sdmx.versions import VersionPattern
from contexture_sandbox.context_broker.times import parse_time
from contexture_sandbox.registry.refusals import NOT_IMPLEMENTED, Refusal, bad_request

Detail = Literal["full", "stubs", "referencestubs"]
References = Literal["none", "children", "descendants", "parents"]

ALL, LATEST, LATEST_STABLE = "*", "~", "+"
_KINDS = {kind.lower(): frozenset({kind}) for kind in PACKAGES} | {
    "organisationscheme": frozenset(
        {"AgencyScheme", "DataProviderScheme", "DataConsumerScheme", "OrganisationUnitScheme"}
    ),
    "contentconstraint": frozenset({"ContentConstraint", "DataConstraint"}),
    # What SDMX-REST 2 calls the same.
    "dataconstraint": frozenset({"ContentConstraint", "DataConstraint"}),
    "allowedconstraint": frozenset({"ContentConstraint", "DataConstraint"}),
    "actualconstraint": frozenset({"ContentConstraint", "DataConstraint"}),
}
_DETAILS: Mapping[str, Detail] = {
    "full": "full",
    "raw": "full",
    "referencepartial": "full",
    "allstubs": "stubs",
    "allcompletestubs": "stubs",
    "referencestubs": "referencestubs",
    "referencecompletestubs": "referencestubs",
}
_REFERENCES: frozenset[References] = frozenset({"none", "children", "descendants", "parents"})
_WORDS_OF_1 = {"all": ALL, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for.

    Attributes:
        kinds: of structures; None for all.
        agencies, ids: `*` selects all.
        versions: which of those of one structure.
        detail: how much of each.
        references: what comes with it.
        as_of_ms: at which moment; None for now.
    """

    kinds: frozenset[str] | None
    agencies: tuple[str, ...] = (ALL,)
    ids: tuple[str, ...] = (ALL,)
    versions: tuple[VersionPattern, ...] = (VersionPattern(LATEST, LATEST),)
    detail: Detail = "full"
    references: References = "none"
    as_of_ms: int | None = None


def version_1(parts: Sequence[str], parameters: Mapping[str, str]) -> Query:
    """`{resource}/{agency}/{id}/{version}`: `all`, `latest`, and lists with `+`.

    Raises:
        Refusal: 400, no such resource or value; 501, a value that the registry does not know to answer.
    """
    agencies, ids, versions = (_words_of_1(part) for part in _filled(parts[1:], ("all", "all", "latest"), "all"))
    kinds = _kinds("*" if parts[0] == "structure" else parts[0])
    return _query(kinds, agencies, ids, versions, parameters)


def version_2(parts: Sequence[str], parameters: Mapping[str, str]) -> Query:
    """What follows `structure/`, `{type}/{agency}/{id}/{version}`: `*`, `~`, `+`, and lists with commas.

    Raises:
        Refusal: 400, no such type or value; 501, a value that the registry does not know to answer.
    """
    kind, *rest = _filled(parts, (ALL, ALL, ALL, LATEST), ALL)
    agencies, ids, versions = (tuple(part.split(",")) for part in rest)
    return _query(_kinds(kind), agencies, ids, versions, parameters)


def _query(
    kinds: frozenset[str] | None,
    agencies: tuple[str, ...],
    ids: tuple[str, ...],
    versions: tuple[str, ...],
    parameters: Mapping[str, str],
) -> Query:
    detail = _DETAILS.get(parameters.get("detail", "full"))
    if detail is None:
        raise bad_request("detail is not one of " + ", ".join(_DETAILS))
    references = parameters.get("references", "none")
    for known in _REFERENCES:
        if known == references:
            as_of_ms = _moment(parameters.get("asOf"))
            return Query(kinds, agencies, ids, _patterns(versions), detail, known, as_of_ms)
    raise Refusal(501, NOT_IMPLEMENTED, "references may be " + ", ".join(sorted(_REFERENCES)))


def _filled(parts: Sequence[str], defaults: Sequence[str], all_items: str) -> tuple[str, ...]:
    if any(part != all_items for part in parts[len(defaults) :]):
        raise Refusal(501, NOT_IMPLEMENTED, "items can't be asked for one by one")
    return (*parts[: len(defaults)], *defaults[len(parts) :])


def _words_of_1(part: str) -> tuple[str, ...]:
    if part == LATEST_STABLE:
        return (part,)
    return tuple(_WORDS_OF_1.get(word, word) for word in part.split("+"))


def _kinds(text: str) -> frozenset[str] | None:
    if text == ALL:
        return None
    found: set[str] = set()
    for name in text.split(","):
        if name.lower() not in _KINDS:
            raise bad_request(f"there is no type {name[:80]}")
        found |= _KINDS[name.lower()]
    return frozenset(found)


def _patterns(versions: tuple[str, ...]) -> tuple[VersionPattern, ...]:
    try:
        return tuple(VersionPattern.parse(version) for version in versions)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    moment_us = parse_time(text)
    if moment_us is None:
        raise bad_request("asOf is no date or time")
    return moment_us // 1000
