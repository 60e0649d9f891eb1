"""Converting one structure from a format that its registry writes into one that it doesn't, and saying what is lost."""

from __future__ import annotations

from contexture.sdmx.transcoding.forms import TARGETS, source_formats, target_format
from contexture.sdmx.transcoding.losses import Losses
from contexture.sdmx.transcoding.transcoder import LARGEST_BYTES, NotTranscodableError, Transcoded, transcode

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
