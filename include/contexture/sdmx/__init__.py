"""Structures of SDMX: their URNs, selectors and order, and splitting messages without losing anything."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from contexture.sdmx.registries import FusionRegistry, SdmxRegistry

_REGISTRIES = frozenset({"FusionRegistry", "SdmxRegistry"})

__all__ = [
    "Artefact",
    "Finding",
    "FindingCode",
    "Format",
    "FusionRegistry",
    "LimitExceededError",
    "Limits",
    "ReferenceOrder",
    "SchemaValidator",
    "SdmxRegistry",
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


def __getattr__(name: str) -> object:
    # Whoever names or routes structures needs no HTTP client.
    if name not in _REGISTRIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("contexture.sdmx.registries"), name)
