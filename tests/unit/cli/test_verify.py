"""`contexture verify`: what it says and how it ends; the looking itself has tests of its own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contexture.cli import verify
from contexture.cli.verify import app
from contexture.errors import ConfigurationError
from contexture.operations.actions.verify import Reported
from contexture.operations.verification.result import DifferenceSample, VerificationResult

VEHICLES = """
name: vehicles
schedule: null
source: {kind: ngsi, connection: broker, service: cars, service_path: /, types: [car]}
"""


def reported(**changes: Any) -> Reported:
    found: dict[str, Any] = {
        "publication": "vehicles",
        "verified_at": datetime(2026, 3, 1, tzinfo=UTC),
        "seconds": 1.5,
        "basis": "keys",
        "generation": 3,
        "sequence": 4,
        "outbox": "outbox4",
        "ledger": {0: 4},
        "topics": 1,
        "partitions": 2,
        "missing_topics": (),
        "held": 9,
        "records": 12,
        "compared": {"bytes": 9},
        "unjudged": {},
        "differences": {"missing": 0, "extra": 0, "different": 0, "order": 0},
        "samples": (),
    }
    return Reported(VerificationResult.model_validate(found | changes), "/home/report/index.html")


DIFFERENT = reported(
    differences={"missing": 1, "extra": 0, "different": 0, "order": 0},
    samples=(
        DifferenceSample(kind="missing", topic="cars", partition=None, name='["car1"]', detail="no record has its key"),
    ),
    missing_topics=("vans",),
    unjudged={"in motion": 2},
)


def test_what_is_equal_is_shown_in_a_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    verify.print_text(reported())

    assert capsys.readouterr().out.splitlines() == [
        "vehicles: 9 keys in 1 topics are as they should be",
        "  read 12 records of 2 partitions, run 4",
        "  compared by bytes: 9",
        "  report: /home/report/index.html",
    ]


def test_differences_are_shown_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    verify.print_text(DIFFERENT)

    printed = capsys.readouterr().out
    assert "the topics differ from what was sent: 1 missing, of 9 keys" in printed
    assert '  missing: cars ["car1"]: no record has its key' in printed
    assert "  topic vans does not exist, or this user may not see it" in printed
    assert "  not compared, in motion: 2" in printed
    assert "next: read the report" in printed
    assert "mode full" in printed


def test_scripts_get_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    verify.print_json(DIFFERENT)

    document = json.loads(capsys.readouterr().out)
    assert document["equal"] is False
    assert document["differences"]["missing"] == 1
    assert document["report"] == "/home/report/index.html"


def test_a_publication_that_does_not_exist_is_reported_with_those_that_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vehicles.yaml").write_text(VEHICLES)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))

    result = CliRunner().invoke(app, ["ferries", "--files", str(tmp_path)])

    assert isinstance(result.exception, ConfigurationError)
    assert result.exception.next_step == "choose among: vehicles"


def test_without_its_connection_in_the_environment_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vehicles.yaml").write_text(VEHICLES)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT", raising=False)

    result = CliRunner().invoke(app, ["vehicles", "--files", str(tmp_path)])

    assert isinstance(result.exception, ConfigurationError)
    assert "AIRFLOW_CONN_KAFKA_DEFAULT" in result.exception.next_step
