"""Converting one structure to a format that its registry does not write, and recording what is lost."""

from __future__ import annotations

from contexture.sources.sdmx.transcoding.losses import Losses
from contexture.sources.sdmx.transcoding.transcoder import (
    LARGEST_BYTES,
    TARGETS,
    NotTranscodableError,
    Transcoded,
    source_formats,
    target_format,
    transcode,
)

__all__ = [
    "LARGEST_BYTES",
    "TARGETS",
    "Losses",
    "NotTranscodableError",
    "Transcoded",
    "source_formats",
    "target_format",
    "transcode",
]
