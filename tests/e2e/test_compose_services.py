"""`python -m tools.compose`: docker-compose.yaml as the documentation starts it.

Left out of `make test`, because it takes up to 25 minutes and needs a container engine: `make compose-test` runs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tools.compose.project import find_obstacle

SECONDS = 3000

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(SECONDS + 120)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run found."""
    obstacle = find_obstacle()
    if obstacle is not None:
        pytest.skip(f"{obstacle} (stand-ins without a registry: python -m tools.images)")
    file = tmp_path_factory.mktemp("compose") / "found.json"
    subprocess.run([sys.executable, "-m", "tools.compose", "--json", str(file)], check=False, timeout=SECONDS)
    report: dict[str, Any] = json.loads(file.read_text())
    return report


def test_what_is_documented_starts_publishes_and_outlasts_kills(found: dict[str, Any]) -> None:
    assert found["volume"]["problems"] == []
    assert "down and up" in found["volume"]["seconds"]


def test_the_same_works_with_the_home_on_the_object_store(found: dict[str, Any]) -> None:
    if not found["s3"]["seconds"]:
        pytest.skip("the image of the object store is neither here nor can be pulled")
    assert found["s3"]["problems"] == []
    assert "publish a change" in found["s3"]["seconds"]
