"""References of SDMX-ML 2.1: elements `Ref`, whose attributes say what they are to, or else what is around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from contexture.sdmx.kinds import HOLDERS, PACKAGES
from contexture.sdmx.urns import Urn

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
    """The URN of a maintainable artefact that is named by its parts; few are named often."""
    return str(Urn.of(kind, agency, identifier, version))


class RefElements:
    """`Ref` of SDMX-ML 2.1: attributes name agency, id and version, and mostly the class."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._parts = _WITHIN.get(kind, {})
        self._part = ""

    def read(self, events: Sequence[Any]) -> Iterable[str]:
        """The references in the next events."""
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
        """What a reference without a class is to."""
        around = _around(events, position)
        if around == "Structure":
            return "MetadataStructure" if self._kind == "Metadataflow" else "DataStructure"
        if around == "Target" and self._kind == "Categorisation":
            return "Category"
        part = self._part_before(events, position) if around in _OF_MANY_CLASSES else ""
        return self._parts.get(part) or _BY_PARENT.get(around, around)

    def _part_before(self, events: Sequence[Any], position: int) -> str:
        """The part of the artefact that began last, in these events or in those before them."""
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
    """The element around one that is the first in it."""
    is_first = position > 1 and type(events[position - 1]) is dict
    return str(events[position - 2]).rpartition(" ")[2] if is_first else ""
