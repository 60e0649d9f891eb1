"""Structures to convert."""

from __future__ import annotations

from io import BytesIO

from builders import structures
from contexture.sources.sdmx import Artefact, split

FREQUENCIES = (
    '<str:Codelist id="CL_FREQ" agencyID="X" version="1.0" isFinal="true" validFrom="2020-01-01T00:00:00">'
    '<com:Annotations><com:Annotation id="A1"><com:AnnotationTitle>Order</com:AnnotationTitle>'
    "<com:AnnotationType>ORDER</com:AnnotationType><com:AnnotationURL>http://example.org</com:AnnotationURL>"
    '<com:AnnotationText xml:lang="fr">ordre</com:AnnotationText><com:AnnotationText xml:lang="en">order'
    "</com:AnnotationText></com:Annotation></com:Annotations>"
    '<com:Name xml:lang="fr">Fréquences</com:Name>'
    '<str:Code id="A"><com:Name xml:lang="fr">Annuel</com:Name><com:Name xml:lang="en">Annual</com:Name></str:Code>'
    '<str:Code id="M"><com:Name xml:lang="en">Monthly</com:Name><str:Parent><Ref id="A"/></str:Parent></str:Code>'
    "</str:Codelist>"
)
"""Of SDMX-ML 2.1: two languages, a parent, an annotation."""

LOST = "annotation text[fr] 1, isFinal 1, name[fr] 1, parent 1"
"""What of it SDMX-JSON and SDMX-ML 3 no longer say."""

MAPPINGS = '<str:StructureSet id="MAPS" agencyID="X" version="1.0"><com:Name>Maps</com:Name></str:StructureSet>'
"""Of a kind that pysdmx leaves out without a word."""


def message(*containers: tuple[str, str], version: str = "2.1") -> bytes:
    """A structure message."""
    return structures.ml(version, *containers).encode()


def only(body: bytes, media_type: str | None = None) -> Artefact:
    """The one structure of a message."""
    [artefact] = split(BytesIO(body), media_type)
    return artefact


def frequencies() -> Artefact:
    """The code list of frequencies."""
    return only(message(("Codelists", FREQUENCIES)))
