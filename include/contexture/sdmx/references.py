"""What an artefact refers to, as URNs of maintainable artefacts: what must be there before it is.

Two ways lead to references. In SDMX-ML 3, SDMX-JSON and Fusion-JSON they are URNs, found in the canonical form. Before,
they were elements and attributes of their own; those are read from what the parser told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from contexture.sdmx.formats import Format
from contexture.sdmx.kinds import kind_of_element
from contexture.sdmx.ref_elements import RefElements, urn_of
from contexture.sdmx.urns import Urn

# A JSON text that is a URN, white space around it allowed, and not the value of a member `urn`, which names its owner.
_URN_TEXT = re.compile(
    rb'urn:sdmx:(?<=["nrt ]urn:sdmx:)(?<!"urn":"urn:sdmx:)([A-Za-z.]+=[^"\\()\s]+\([^"\\()\s]*\))(\.?)[^"\\\s]*'
    rb'(?=(?:\\[nrt]| )*")'
)
_WITHOUT_EXTENSIONS = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0, Format.SDMX_ML_2_1})
"""Formats whose code lists, the largest of all artefacts, can't refer to anything."""
_REMEMBERED = 1 << 14


class EventReader(Protocol):
    """Reads references from what the parser told: names, each followed by its attributes, texts, and zeros for ends."""

    def read(self, events: Sequence[Any]) -> Iterable[str]:
        """URNs in the next of them."""


class References:
    """Gathers the references of one artefact."""

    def __init__(self, events: EventReader | None = None, *, none: bool = False) -> None:
        self._events = events
        self._none = none
        self._found: set[str] = set()
        self._texts: set[tuple[bytes, bytes]] = set()

    def read(self, events: Sequence[Any], written: bytes) -> None:
        """Takes in what the parser told, and the JSON texts that it is written as."""
        if self._none:
            return
        self.read_text(written)
        if self._events:
            self._found.update(self._events.read(events))

    def read_text(self, written: bytes) -> None:
        """Takes in a piece of JSON."""
        self._texts.update(_URN_TEXT.findall(written))

    def but(self, *own: str | None) -> tuple[str, ...]:
        """URNs of all maintainable artefacts referred to, in alphabetical order, without the artefact's own."""
        found = set(self._found)
        found.update(filter(None, (_maintainable(text, item) for text, item in self._texts)))
        return tuple(sorted(found.difference(own)))


def of_format(format_: Format, kind: str, agency: str | None) -> References:
    """References of an artefact of this format."""
    if kind == "Codelist" and format_ in _WITHOUT_EXTENSIONS:
        return References(none=True)
    if format_ is Format.SDMX_ML_2_1:
        return References(RefElements(kind))
    if format_ in {Format.SDMX_ML_1_0, Format.SDMX_ML_2_0}:
        return References(NamedParts(agency))
    return References()


@lru_cache(_REMEMBERED)
def _maintainable(text: bytes, item: bytes) -> str | None:
    try:
        # What follows the point doesn't matter: the item is in the artefact.
        urn = Urn.parse(f"urn:sdmx:{text.decode()}{'.item' if item else ''}")
    except ValueError:
        return None
    kind = kind_of_element(urn.class_name)
    if kind and not item and kind != urn.class_name:
        return str(Urn.of(kind, urn.agency, urn.id, urn.version))
    return str(urn.maintainable())


class NamedParts:
    """References of SDMX-ML 1.0 and 2.0: attributes of components, and elements such as `KeyFamilyRef`."""

    def __init__(self, agency: str | None) -> None:
        self._agency = agency
        self._open: list[str] = []
        self._parts: dict[str, str] | None = None
        self._outside = 0

    def read(self, events: Sequence[Any]) -> Iterable[str]:
        """The references in the next events."""
        for position, event in enumerate(events):
            if type(event) is dict:
                self._begin(events[position - 1].rpartition(" ")[2])
                yield from self._components(event)
            elif type(event) is int:
                yield from self._end()
            elif self._parts is not None and not _is_name(events, position):
                self._parts[self._open[-1]] = event.strip()

    def _begin(self, name: str) -> None:
        self._open.append(name)
        if self._parts is None and name.endswith("Ref"):
            self._parts, self._outside = {}, len(self._open)

    def _end(self) -> Iterable[str]:
        if self._parts is not None and len(self._open) == self._outside:
            yield from self._reference(self._parts)
            self._parts = None
        self._open.pop()

    def _components(self, attributes: Mapping[str, str]) -> Iterable[str]:
        if "codelist" in attributes:
            agency, version = attributes.get("codelistAgency"), attributes.get("codelistVersion")
            yield from self._named("Codelist", agency, attributes["codelist"], version)
        if "conceptSchemeRef" in attributes:
            agency = attributes.get("conceptSchemeAgency") or attributes.get("conceptAgency")
            yield from self._named("ConceptScheme", agency, attributes["conceptSchemeRef"], None)

    def _reference(self, parts: Mapping[str, str]) -> Iterable[str]:
        for part, identifier in parts.items():
            name = part.removesuffix("ID")
            kind = kind_of_element(name)
            if kind and name != part:
                agency = parts.get(f"{name}AgencyID") or parts.get("AgencyID")
                yield from self._named(kind, agency, identifier, parts.get(f"{name}Version") or parts.get("Version"))

    def _named(self, kind: str, agency: str | None, identifier: str, version: str | None) -> Iterable[str]:
        agency = agency or self._agency
        if agency and identifier:
            yield urn_of(kind, agency, identifier, version)


def _is_name(events: Sequence[Any], position: int) -> bool:
    return position + 1 < len(events) and type(events[position + 1]) is dict
