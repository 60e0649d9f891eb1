"""A home and a folder of publications, which the environment names as Airflow's services have it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from contexture.storage.home import Home

FILE = """
name: {name}
source: {{kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}}
"""
VEHICLES = {name: FILE.format(name=name) for name in ("vehicles", "buses")}


def page_installation(folder: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str] = VEHICLES) -> Home:
    """Writes the publication files, by name, and an empty home, nothing of which has run."""
    (folder / "publications").mkdir()
    (folder / "home").mkdir()
    for name, text in files.items():
        (folder / "publications" / f"{name}.yaml").write_text(text)
    monkeypatch.setenv("CONTEXTURE_HOME", str(folder / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(folder / "publications"))
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    return Home(str(folder / "home"))
