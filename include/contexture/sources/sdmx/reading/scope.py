"""Which structures a publication selects, by any of the URNs they have.

One artefact may have a URN in one format and another in the next (a `ContentConstraint` of SDMX-ML 2.1 is a
`DataConstraint` in a registry's log). Here every structure goes by its *name*, the one that `same_artefact` gives for
all of its URNs; the URNs themselves are stored with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from contexture.sources.sdmx.formats import same_artefact
from contexture.sources.sdmx.selectors import Selector, select_structures
from contexture.sources.sdmx.urn import Urn

Names = Mapping[str, str]
"""URNs by name."""


def by_name(urns: Iterable[str]) -> dict[str, str]:
    """Returns the URNs by their names; of two URNs of one artefact the first."""
    found: dict[str, str] = {}
    for urn in urns:
        found.setdefault(same_artefact(urn), urn)
    return found


class SelectedStructures:
    """The structures that selectors select.

    Args:
        selectors: of a publication; without any, everything is selected.
        urns: all that is known of any structure, also of deleted ones; requests to the registry use the first URN of a
            name.
    """

    def __init__(self, selectors: Sequence[Selector], urns: Iterable[str]) -> None:
        self._selectors = selectors
        self._written: dict[str, list[str]] = {}
        for urn in dict.fromkeys(urns):
            self._written.setdefault(same_artefact(urn), []).append(urn)
        self._versions: dict[str, list[str]] = {}
        for name in self._written:
            self._versions.setdefault(_without_version(name), []).append(name)

    def urn(self, name: str) -> str:
        """Returns the registry's URN of a structure."""
        return self._written[name][0]

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns those of the structures that are selected when they are all there is, in their order."""
        held = tuple(names)
        if not self._selectors:
            return held
        chosen = select_structures(self._selectors, [urn for name in held for urn in self._written[name]])
        selected = {same_artefact(urn) for urn in chosen}
        return tuple(name for name in held if name in selected)

    def versions_beside(self, names: Iterable[str]) -> tuple[str, ...]:
        """Returns these structures and all other versions of them, each once: these alone show which is the latest."""
        return tuple(dict.fromkeys(self._beside(names)))

    def _beside(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield from self._versions[_without_version(name)]


def _without_version(name: str) -> str:
    try:
        return str(replace(Urn.parse(name), version=""))
    except ValueError:
        # What has no version to distinguish it is a structure of its own.
        return name
