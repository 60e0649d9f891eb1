"""Structures that are held, found by what references say: `1.0+` and `~` mean one of the versions that there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from contexture.sdmx.selectors import Selector
from contexture.sdmx.urns import Urn
from contexture.sdmx.versions import VersionPattern

_ANY = "*"


class Holdings:
    """Some structures, by their URNs.

    Args:
        urns: in an order that what is found keeps; those that can't be read are found by their whole text alone.
    """

    def __init__(self, urns: Iterable[str]) -> None:
        self.urns = tuple(dict.fromkeys(urns))
        self._place = {urn: place for place, urn in enumerate(self.urns)}
        self._versions: dict[tuple[str, str, str], dict[str, str]] = {}
        for urn in self.urns:
            if parsed := parsed_urn(urn):
                self._versions.setdefault(_series(parsed), {})[parsed.version] = urn
        self._known: dict[str, tuple[str, ...]] = {}

    def __contains__(self, urn: str) -> bool:
        return urn in self._place

    def meant_by(self, references: Iterable[str]) -> list[str]:
        """Those that any of the references means, in the order of the structures."""
        found = {urn for reference in references for urn in self.meant_by_one(reference)}
        return sorted(found, key=self._place.__getitem__)

    def meant_by_one(self, reference: str) -> tuple[str, ...]:
        """Those that a reference means: one, or with `*` in it several; none where it isn't held."""
        if reference in self._place:
            return (reference,)
        if reference not in self._known:
            self._known[reference] = tuple(self._found(reference))
        return self._known[reference]

    def versions_of(self, urn: Urn) -> Mapping[str, str]:
        """The URNs of all versions of an artefact, by version."""
        return self._versions.get(_series(urn), {})

    def _found(self, reference: str) -> Iterable[str]:
        parsed = parsed_urn(reference)
        if parsed is None:
            return ()
        pattern = _pattern(parsed.version)
        if _ANY in parsed.agency or _ANY in parsed.id:
            return _selector(parsed, pattern).choose(self.urns)
        versions = self.versions_of(parsed)
        return [versions[version] for version in pattern.choose(versions)]


def parsed_urn(urn: str) -> Urn | None:
    """What a URN says, or None where it is none."""
    try:
        return Urn.parse(urn)
    except ValueError:
        return None


def _series(urn: Urn) -> tuple[str, str, str]:
    return urn.class_name, urn.agency, urn.id


def _pattern(version: str) -> VersionPattern:
    try:
        return VersionPattern.parse(version)
    except ValueError:
        return VersionPattern(_ANY, _ANY)


def _selector(urn: Urn, pattern: VersionPattern) -> Selector:
    agencies, ids = (frozenset[str]() if part == _ANY else frozenset((part,)) for part in (urn.agency, urn.id))
    return Selector(str(urn), frozenset((urn.class_name,)), agencies, ids, (pattern,))
