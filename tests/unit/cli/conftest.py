"""Runs the command line as its users do: exit code, standard output, standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from contexture.cli import main

VEHICLES = "name: vehicles\nsource: {kind: ngsi, connection: context_broker, service: a, service_path: /b}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home beside a folder with one good publication, vehicles; no database and no Kafka is known."""
    folder, home = tmp_path / "publications", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "vehicles.yaml").write_text(VEHICLES)
    monkeypatch.setenv("CONTEXTURE_HOME", str(home))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(folder))
    for name in ("CONTEXTURE_DATABASE", "AIRFLOW_CONN_KAFKA_DEFAULT"):
        monkeypatch.delenv(name, raising=False)
    return home


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@pytest.fixture
def contexture(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["contexture", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return Done(int(end.value.code or 0), captured.out, captured.err)

    return run
