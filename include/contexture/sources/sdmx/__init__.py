"""SDMX structures: their URNs, selectors and order, and lossless splitting of structure messages."""

from __future__ import annotations

from contexture.sources.sdmx.errors import SplitWarning, StructureMessageError, UnsplittableFormatError
from contexture.sources.sdmx.formats import Format
from contexture.sources.sdmx.ordering import reference_order
from contexture.sources.sdmx.selectors import Selector, SelectorError, select_structures
from contexture.sources.sdmx.splitting import split
from contexture.sources.sdmx.splitting.artefact import Artefact
from contexture.sources.sdmx.urn import Urn

__all__ = [
    "Artefact",
    "Format",
    "Selector",
    "SelectorError",
    "SplitWarning",
    "StructureMessageError",
    "UnsplittableFormatError",
    "Urn",
    "reference_order",
    "select_structures",
    "split",
]
