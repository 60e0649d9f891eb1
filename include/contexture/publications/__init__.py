"""Publications: one YAML file for each configured flow, and everything that may be wrong with it.

A publication is of one of three kinds, by `source.kind`: `NgsiPublication`, `SdmxPublication` or
`OperationsPublication`, each with sections of its own. What keys exclude each other is in `checks`.
"""

from __future__ import annotations

from contexture.publications.delivery import SizedPublish
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
    SdmxPublication,
    check_name,
)
from contexture.publications.quality import EntityQuality
from contexture.publications.source import NgsiSource, SdmxSource

__all__ = [
    "EntityQuality",
    "LoadedPublication",
    "NgsiPublication",
    "NgsiSource",
    "OperationsPublication",
    "Problem",
    "Publication",
    "PublicationError",
    "SdmxPublication",
    "SdmxSource",
    "SizedPublish",
    "canonical_json",
    "check_name",
    "discover",
    "fingerprint",
    "load_publication_file",
    "load_publications",
    "parse_publication",
]
