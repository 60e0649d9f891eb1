"""What fuzzing starts from: real samples where this machine has them, by their places below the folder of samples."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[3] / "shared" / "samples"
_LARGEST_BYTES = 96 << 10
"""Larger samples make few cases a second and show nothing that smaller ones don't."""


def samples(*patterns: str) -> dict[str, bytes]:
    """The samples that match; none where this machine has none (CONTEXTURE_SAMPLES names their folder)."""
    folder = Path(os.environ.get("CONTEXTURE_SAMPLES", _BESIDE_THE_REPOSITORY))
    found = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    return {str(path.relative_to(folder)): path.read_bytes()[:_LARGEST_BYTES] for path in found}


def with_samples(own: Mapping[str, bytes], *patterns: str) -> dict[str, bytes]:
    """Literal inputs, and the samples that match."""
    return {**own, **samples(*patterns)}
