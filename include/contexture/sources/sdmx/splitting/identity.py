"""The identity of an artefact: its own statements, and the URN that follows from them.

Two ways lead to references. In SDMX-ML 3, SDMX-JSON and Fusion-JSON they are URNs, found in the canonical form. Before,
they were elements and attributes of their own; those are read from the events of the parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from contexture.sources.sdmx.errors import SplitWarning
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.splitting.artefact import Artefact, MessageFrame
from contexture.sources.sdmx.urn import (
    DEFAULT_VERSION,
    HOLDERS,
    PACKAGES,
    REGISTRATION,
    SINGLE_SCHEMES,
    Urn,
    is_registration,
    kind_of_element,
)

_BY_PARENT = {
    "CodelistRef": "Codelist",
    "ConceptIdentity": "Concept",
    "ConceptRole": "Concept",
    "Enumeration": "Codelist",
    "IncludedCodelist": "Codelist",
}
"""What a reference of SDMX-ML 2.1 without a class is to, by the element around it; others have the class's own name."""
_OF_MANY_CLASSES = frozenset({"Enumeration", "Source", "Target"})
_WITHIN = {
    "DataStructure": {
        "Attribute": "Codelist",
        "Dimension": "Codelist",
        "MeasureDimension": "ConceptScheme",
        "PrimaryMeasure": "Codelist",
        "TimeDimension": "Codelist",
    },
    "StructureSet": {
        "CategorySchemeMap": "CategoryScheme",
        "CodelistMap": "Codelist",
        "ConceptSchemeMap": "ConceptScheme",
        "ReportingTaxonomyMap": "ReportingTaxonomy",
    },
}
"""By kind of artefact: what elements that many have say by the part of it that they are in, the last one to begin."""
_REMEMBERED = 1 << 14


@lru_cache(_REMEMBERED)
def urn_of(kind: str, agency: str, identifier: str, version: str | None) -> str:
    """Returns the URN of a maintainable artefact that is named by its parts; few are named often."""
    return str(Urn.of(kind, agency, identifier, version))


class RefElements:
    """`Ref` of SDMX-ML 2.1: attributes name agency, id and version, and mostly the class."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._parts = _WITHIN.get(kind, {})
        self._part = ""

    def read(self, events: Sequence[Any]) -> Iterable[str]:
        """Yields the references in the next events."""
        position = _next(events, "Ref", 0)
        while position >= 0:
            attributes = events[position + 1]
            if type(attributes) is dict and "agencyID" in attributes:
                class_name = attributes.get("class") or self._class_at(events, position)
                yield from self._reference(attributes, class_name)
            position = _next(events, "Ref", position + 1)
        self._part = self._part_before(events, len(events))

    def _reference(self, attributes: Mapping[str, str], class_name: str) -> Iterable[str]:
        agency = attributes["agencyID"]
        parent = attributes.get("maintainableParentID")
        if parent is not None:
            if holder := HOLDERS.get(class_name):
                yield urn_of(holder, agency, parent, attributes.get("maintainableParentVersion"))
        elif class_name in PACKAGES and "id" in attributes:
            yield urn_of(class_name, agency, attributes["id"], attributes.get("version"))

    def _class_at(self, events: Sequence[Any], position: int) -> str:
        """Returns what a reference without a class is to."""
        around = _around(events, position)
        if around == "Structure":
            return "MetadataStructure" if self._kind == "Metadataflow" else "DataStructure"
        if around == "Target" and self._kind == "Categorisation":
            return "Category"
        part = self._part_before(events, position) if around in _OF_MANY_CLASSES else ""
        return self._parts.get(part) or _BY_PARENT.get(around, around)

    def _part_before(self, events: Sequence[Any], position: int) -> str:
        """Returns the part of the artefact that began last, in these events or in those before them."""
        for at in range(position - 1, -1, -1) if self._parts else ():
            if type(events[at]) is dict and (name := events[at - 1].rpartition(" ")[2]) in self._parts:
                return str(name)
        return self._part


def _next(events: Sequence[Any], name: str, start: int) -> int:
    try:
        return events.index(name, start)
    except ValueError:
        return -1


def _around(events: Sequence[Any], position: int) -> str:
    """Returns the element around one that is the first in it."""
    is_first = position > 1 and type(events[position - 1]) is dict
    return str(events[position - 2]).rpartition(" ")[2] if is_first else ""


# A JSON text that is a URN, white space around it allowed, and not the value of a member `urn`, which names its owner.
_URN_TEXT = re.compile(
    rb'urn:sdmx:(?<=["nrt ]urn:sdmx:)(?<!"urn":"urn:sdmx:)([A-Za-z.]+=[^"\\()\s]+\([^"\\()\s]*\))(\.?)[^"\\\s]*'
    rb'(?=(?:\\[nrt]| )*")'
)
_WITHOUT_EXTENSIONS = frozenset({Format.SDMX_ML_1_0, Format.SDMX_ML_2_0, Format.SDMX_ML_2_1})
"""Formats whose code lists, the largest of all artefacts, can't refer to anything."""


class EventReader(Protocol):
    """Reads references from the parser's events: names, each followed by its attributes, texts, and zeros for ends."""

    def read(self, events: Sequence[Any]) -> Iterable[str]:
        """URNs in the next of them."""


class References:
    def __init__(self, events: EventReader | None = None, *, none: bool = False) -> None:
        self._events = events
        self._none = none
        self._found: set[str] = set()
        self._texts: set[tuple[bytes, bytes]] = set()

    def read(self, events: Sequence[Any], written: bytes) -> None:
        """Adds the parser's events, and the JSON texts that they are written as."""
        if self._none:
            return
        self.read_text(written)
        if self._events:
            self._found.update(self._events.read(events))

    def read_text(self, written: bytes) -> None:
        """Adds a piece of JSON."""
        self._texts.update(_URN_TEXT.findall(written))

    def but(self, *own: str | None) -> tuple[str, ...]:
        """URNs of all maintainable artefacts referred to, in alphabetical order, without the artefact's own."""
        found = set(self._found)
        found.update(filter(None, (_maintainable(text, item) for text, item in self._texts)))
        return tuple(sorted(found.difference(own)))


def of_format(format_: Format, kind: str, agency: str | None) -> References:
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
        """Yields the references in the next events."""
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


NOT_MAINTAINABLE = frozenset({"Agency", "Concept"})
"""What SDMX-ML 1.0 and 2.0 have beside maintainable artefacts."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What an artefact says about itself, before any rule is applied."""

    kind: str
    agency: str | None
    id: str | None
    version: str | None
    declared_urn: str | None


@dataclass(frozen=True, slots=True)
class Body:
    """What is known of an artefact beside its identity.

    Attributes:
        content: in the encoding of the message.
        content_hash: of the canonical form.
        references: that were gathered in it.
        offset: of its first byte in the message, in UTF-8.
    """

    content: bytes
    content_hash: bytes
    references: References
    offset: int


def artefact_of(identity: Identity, body: Body, format_: Format, envelope: MessageFrame) -> Artefact:
    """Returns the artefact, named and with what is odd about its name."""
    identity = completed(identity)
    if identity.kind == REGISTRATION:
        identity = _completed_registration(identity, body.references)
    urn, findings = resolve_urn(identity, body.offset)
    return Artefact(
        urn=urn,
        declared_urn=identity.declared_urn,
        kind=identity.kind,
        agency=identity.agency,
        id=identity.id,
        version=identity.version or DEFAULT_VERSION,
        references=body.references.but(urn, identity.declared_urn),
        content_hash=body.content_hash,
        content=body.content,
        format=format_,
        envelope=envelope,
        findings=findings,
        offset=body.offset,
    )


def completed(identity: Identity) -> Identity:
    """With the version, and in schemes that an agency has one of the id, that need not be written.

    SDMX 2.1 has 1.0 for the version of everything, 3.0 for what has no version.
    """
    if identity.kind in SINGLE_SCHEMES:
        return replace(identity, id=identity.id or SINGLE_SCHEMES[identity.kind], version=DEFAULT_VERSION)
    return identity if identity.version else replace(identity, version=DEFAULT_VERSION)


def resolve_urn(identity: Identity, offset: int) -> tuple[str | None, tuple[SplitWarning, ...]]:
    """Returns the URN of an artefact, and what is odd about it."""
    if identity.kind not in PACKAGES:
        return _foreign(identity, offset)
    if not identity.agency or not identity.id:
        return None, (SplitWarning("no-identity", f"a {identity.kind} without agency or id", offset),)
    urn = str(Urn.of(identity.kind, identity.agency, identity.id, identity.version))
    if identity.kind == REGISTRATION and is_registration(identity.declared_urn):
        return identity.declared_urn, ()
    if identity.kind == REGISTRATION and not is_registration(urn):
        # It is read by its URN alone, because no list shows its parts.
        return None, (SplitWarning("no-identity", "a Registration whose agency or id makes no URN", offset),)
    if identity.declared_urn in {None, urn}:
        return urn, ()
    return urn, (SplitWarning("urn-differs", f"{urn} declares itself as {identity.declared_urn}", offset),)


def _completed_registration(identity: Identity, references: References) -> Identity:
    """With the agency of the provision agreement, which is all that a registration says of one.

    No standard says how the URN of a registration is made, so that one that declares its own is right.
    """
    if is_registration(identity.declared_urn):
        named = Urn.parse(identity.declared_urn or "")
        return replace(identity, agency=named.agency, id=named.id, version=named.version)
    return identity if identity.agency else replace(identity, agency=_agency_of_agreement(references))


def _agency_of_agreement(references: References) -> str | None:
    for reference in references.but():
        try:
            urn = Urn.parse(reference)
        except ValueError:
            continue
        if urn.class_name.endswith("ProvisionAgreement"):
            return urn.agency
    return None


def _foreign(identity: Identity, offset: int) -> tuple[str | None, tuple[SplitWarning, ...]]:
    if identity.kind in NOT_MAINTAINABLE:
        found = SplitWarning(
            "not-maintainable", f"{identity.kind} {identity.id or 'without id'} is not maintainable", offset
        )
        return None, (found,)
    found = SplitWarning("unknown-kind", f"{identity.kind} {identity.id or 'without id'} is of an unknown kind", offset)
    try:
        return str(Urn.parse(identity.declared_urn or "")), (found,)
    except ValueError:
        return None, (found, SplitWarning("no-identity", f"this {identity.kind} declares no URN", offset))
