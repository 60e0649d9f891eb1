"""`python -m tools.compose`: docker-compose.yaml as the documentation starts it.

Left out of `make test`, because it takes up to 25 minutes and needs a container engine: `make compose-test` runs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.compose.project import find_obstacle

SECONDS = 3000

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(SECONDS + 120)]


def test_what_is_documented_starts_publishes_and_outlasts_kills(tmp_path: Path) -> None:
    obstacle = find_obstacle()
    if obstacle is not None:
        pytest.skip(f"{obstacle} (stand-ins without a registry: python -m tools.images)")
    found = tmp_path / "found.json"

    done = subprocess.run([sys.executable, "-m", "tools.compose", "--json", str(found)], check=False, timeout=SECONDS)

    report = json.loads(found.read_text())
    assert [*report["volume"]["problems"], *report["s3"]["problems"]] == []
    assert done.returncode == 0
