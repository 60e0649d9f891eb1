"""Publications: one YAML file for each configured flow, and everything that may be wrong with it.

A publication is of one of three kinds, by `source.kind`: `NgsiPublication`, `SdmxPublication` or
`OperationsPublication`, each with sections of its own. What keys exclude each other is in `checks`.
"""

from __future__ import annotations

from contexture.publications.delivery import Batches, Message, Publish, SizedPublish
from contexture.publications.fingerprint import canonical_json, fingerprint
from contexture.publications.loading import (
    LoadedPublication,
    discover,
    load_publication_file,
    load_publications,
    parse_publication,
)
from contexture.publications.problems import Problem, PublicationError
from contexture.publications.publication import (
    NgsiPublication,
    OperationsPublication,
    Publication,
    Resync,
    Retention,
    SdmxPublication,
)
from contexture.publications.quality import EntityQuality, Quality, Range
from contexture.publications.source import NgsiSource, OperationsSource, SdmxSource, ShrinkLimit, Source
from contexture.publications.topics import EntityTopics, StructureTopics, Topics

__all__ = [
    "Batches",
    "EntityQuality",
    "EntityTopics",
    "LoadedPublication",
    "Message",
    "NgsiPublication",
    "NgsiSource",
    "OperationsPublication",
    "OperationsSource",
    "Problem",
    "Publication",
    "PublicationError",
    "Publish",
    "Quality",
    "Range",
    "Resync",
    "Retention",
    "SdmxPublication",
    "SdmxSource",
    "ShrinkLimit",
    "SizedPublish",
    "Source",
    "StructureTopics",
    "Topics",
    "canonical_json",
    "discover",
    "fingerprint",
    "load_publication_file",
    "load_publications",
    "parse_publication",
]
