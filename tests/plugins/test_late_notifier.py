"""A run that is late is alerted to, as Airflow's triggerer calls it; one that failed or ended is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from airflow.triggers.callback import CallbackTrigger  # noqa: E402

from builders.outboxes import publication  # noqa: E402
from contexture_airflow.alerts.notifiers import deadline  # noqa: E402
from fakes.mail_server import MailServer  # noqa: E402

SetConnection = Callable[..., None]
LATE = {"mail": ["ops@example.org"], "published_within_minutes": 30}


@pytest.fixture
def server(set_connection: SetConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    monkeypatch.delenv("CONTEXTURE_MAIL_TO", raising=False)
    with MailServer() as running:
        extra = {"from_email": "contexture@example.org", "disable_ssl": True, "disable_tls": True, "timeout": 5}
        set_connection("contexture_mail", conn_type="smtp", host="127.0.0.1", port=running.port, extra=extra)
        yield running


def miss(**changes: Any) -> None:
    """What Airflow does when a deadline is missed: the callback as it is stored, with the run as REST writes it."""
    found = deadline(publication(notify=LATE))
    assert found is not None
    stored = json.loads(json.dumps(found.callback.serialize()))
    run = {"dag_run_id": "manual__1", "dag_id": "publish_vehicles", "state": "running", "run_type": "manual"}
    context = {"dag_run": run | changes, "deadline": {"id": "x", "deadline_time": "2026-03-01T12:00:00Z"}}
    trigger = CallbackTrigger(stored["path"], {**stored["kwargs"], "context": context})

    async def states() -> list[str]:
        return [str(event.payload["state"]) async for event in trigger.run()]

    assert asyncio.run(states()) == ["running", "success"]


def test_a_publication_that_wants_none_has_no_deadline() -> None:
    assert deadline(publication()) is None


def test_the_deadline_counts_from_when_the_run_was_queued() -> None:
    found = deadline(publication(notify=LATE))
    assert found is not None
    assert found.interval.total_seconds() == 1800
    assert found.reference.reference_name == "DagRunQueuedAtDeadline"


def test_a_run_that_still_runs_is_mailed_about(server: MailServer) -> None:
    miss()
    (mail,) = server.mails
    assert mail.message["Subject"] == "[Contexture] vehicles: not published in time"
    assert "the run was queued more than 30 min ago and is still running" in mail.body
    assert "Nothing is lost or skipped: the run continues, unless the publication is suspended" in mail.body
    assert "A run of a suspended publication waits until the publication is resumed" in mail.body
    assert "/dags/publish_vehicles/runs/manual__1" in mail.body


@pytest.mark.parametrize("changes", [{"state": "failed"}, {"state": "success"}, {"run_type": "backfill"}])
def test_no_alert_is_sent_of_a_run_that_failed_or_ended_or_of_a_backfill(
    server: MailServer, changes: dict[str, str]
) -> None:
    miss(**changes)
    assert server.mails == []
