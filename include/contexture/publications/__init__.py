"""Publications: one YAML file for each configured flow, and everything that may be wrong with it.

The model and its defaults are in `publication`, `source`, `topics`, `delivery` and `quality`; what excludes each other
in `combinations`; what this version can't do yet in `supported`.
"""

from __future__ import annotations

from contexture.publications.delivery import Batches, Message, Publish
from contexture.publications.fingerprint import canonical_json, fingerprint
from contexture.publications.loading import (
    LoadedPublication,
    discover,
    load_file,
    load_publication_file,
    load_publications,
)
from contexture.publications.problems import Problem, PublicationError
from contexture.publications.publication import Publication, Resync, Retention
from contexture.publications.quality import Quality, Range
from contexture.publications.source import ShrinkLimit, Source
from contexture.publications.topics import Topics

__all__ = [
    "Batches",
    "LoadedPublication",
    "Message",
    "Problem",
    "Publication",
    "PublicationError",
    "Publish",
    "Quality",
    "Range",
    "Resync",
    "Retention",
    "ShrinkLimit",
    "Source",
    "Topics",
    "canonical_json",
    "discover",
    "fingerprint",
    "load_file",
    "load_publication_file",
    "load_publications",
]
