"""SDMX structures: their URNs, selectors and order, and lossless splitting of structure messages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from contexture.sources.sdmx.errors import (
    FindingCode,
    LimitExceededError,
    Limits,
    SplitWarning,
    StructureMessageError,
    UnsplittableFormatError,
)
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.ordering import ReferenceOrder, reference_order
from contexture.sources.sdmx.selectors import Selector, SelectorError, select_structures
from contexture.sources.sdmx.splitting import Split, split
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.urn import Urn
from contexture.sources.sdmx.validation import SchemaValidator
from contexture.sources.sdmx.versions import Version, VersionPattern

if TYPE_CHECKING:
    from contexture.sources.sdmx.registry import FusionRegistry, SdmxRegistry

_REGISTRIES = frozenset({"FusionRegistry", "SdmxRegistry"})

__all__ = [
    "Artefact",
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
    "SplitWarning",
    "StructureMessageError",
    "UnsplittableFormatError",
    "Urn",
    "Version",
    "VersionPattern",
    "reference_order",
    "select_structures",
    "split",
]


def __getattr__(name: str) -> object:
    # Anyone who names or routes structures needs no HTTP client.
    if name not in _REGISTRIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("contexture.sources.sdmx.registry"), name)
