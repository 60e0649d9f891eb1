"""Structures of SDMX: their URNs, selectors and order, and splitting messages without losing anything."""

from __future__ import annotations

from contexture.sdmx.artefact import Artefact
from contexture.sdmx.errors import LimitExceededError, StructureMessageError, UnsplittableFormatError
from contexture.sdmx.findings import Finding, FindingCode
from contexture.sdmx.formats import Format
from contexture.sdmx.limits import Limits
from contexture.sdmx.ordering import ReferenceOrder, reference_order
from contexture.sdmx.selector_parts import SelectorError
from contexture.sdmx.selectors import Selector, choose
from contexture.sdmx.splitting import Split, split
from contexture.sdmx.urns import Urn
from contexture.sdmx.validation import SchemaValidator
from contexture.sdmx.versions import Version, VersionPattern

__all__ = [
    "Artefact",
    "Finding",
    "FindingCode",
    "Format",
    "LimitExceededError",
    "Limits",
    "ReferenceOrder",
    "SchemaValidator",
    "Selector",
    "SelectorError",
    "Split",
    "StructureMessageError",
    "UnsplittableFormatError",
    "Urn",
    "Version",
    "VersionPattern",
    "choose",
    "reference_order",
    "split",
]
