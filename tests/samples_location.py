"""Where the real samples lie: beside the repository, or where CONTEXTURE_SAMPLES says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "samples"


def samples() -> Path | None:
    """The folder of the real samples, or None where this machine has none."""
    folder = Path(os.environ.get("CONTEXTURE_SAMPLES", _BESIDE_THE_REPOSITORY))
    return folder if folder.is_dir() else None


def samples_or_skip() -> Path:
    """The folder of the real samples; skips the calling test, with the reason, where there is none."""
    folder = samples()
    if folder is None:
        pytest.skip("needs the real samples: set CONTEXTURE_SAMPLES to their folder")
    return folder
