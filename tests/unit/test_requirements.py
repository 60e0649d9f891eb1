"""requirements.txt, for those who install without uv, says what uv.lock says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# As in the Makefile's target `lock`.
EXPORT = ("export", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--quiet")


def pins(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]


def test_requirements_are_those_of_the_lock():
    uv = Path(sys.executable).parent / "uv"
    done = subprocess.run([uv, *EXPORT, "--offline"], cwd=ROOT, capture_output=True, text=True, check=True)
    expected = pins(done.stdout)
    assert len(expected) > 100
    assert pins((ROOT / "requirements.txt").read_text()) == expected


def test_the_makefile_exports_them_in_the_same_way():
    assert " ".join(EXPORT) in (ROOT / "Makefile").read_text()
