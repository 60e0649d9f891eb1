"""The terminal in which the commands of the pages are typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A folder, with a home and a folder of publications in it; no connection, and no Airflow."""
    (tmp_path / "home").mkdir()
    (tmp_path / "publications").mkdir()
    where = {
        "HOME": tmp_path,
        "CONTEXTURE_HOME": tmp_path / "home",
        "CONTEXTURE_PUBLICATIONS": tmp_path / "publications",
    }
    return Terminal(tmp_path, **{name: str(path) for name, path in where.items()})
