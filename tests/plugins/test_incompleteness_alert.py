"""People are alerted when deletions in the source have not been detected for several runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.outboxes import NOON, publication  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.incompleteness import Incompleteness  # noqa: E402
from contexture.storage.state import StatePointer  # noqa: E402
from contexture_airflow.alerts.run_alerts import alert_incompleteness  # noqa: E402
from fakes.mail_server import MailServer  # noqa: E402

VEHICLES = publication(notify={"mail": ["ops@example.org"]})
CONTEXT: Any = {
    "ti": SimpleNamespace(dag_id="publish_vehicles", log_url=""),
    "dag_run": SimpleNamespace(run_id="manual__1"),
}
LOG = logging.getLogger(__name__)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


@pytest.fixture
def server(set_connection: Callable[..., None]) -> Iterator[MailServer]:
    with MailServer() as running:
        extra = {"from_email": "contexture@example.org", "disable_ssl": True, "disable_tls": True, "timeout": 5}
        set_connection("contexture_mail", conn_type="smtp", host="127.0.0.1", port=running.port, extra=extra)
        yield running


def after(storage: Home, runs: int) -> None:
    """Alerts after so many runs without a complete read."""
    found = Incompleteness(since=NOON, runs=runs, why="the walk found 3 of 5", next_step="read the log of the broker")
    storage.publication("vehicles").state.commit(StatePointer(sequence=runs, outbox="outbox1", incomplete=found))
    alert_incompleteness(storage.publication(VEHICLES.name), VEHICLES, CONTEXT, LOG)


def test_people_are_alerted_once_since_when_why_and_what_to_do(storage: Home, server: MailServer) -> None:
    for runs in range(1, 6):
        after(storage, runs)
    (mail,) = server.mails
    assert mail.message["Subject"] == "[Contexture] vehicles: deletions not detected"
    assert "could not detect deletions" in mail.body
    assert "since 2026-03-01 12:00 UTC (3 runs) deletions in the source are not detected" in mail.body
    assert "the walk found 3 of 5" in mail.body
    assert "What to do next:</b> read the log of the broker" in mail.body


def test_a_state_that_can_not_be_read_fails_no_run(storage: Home, caplog: pytest.LogCaptureFixture) -> None:
    storage.write("vehicles/state/CURRENT", b"{")
    alert_incompleteness(storage.publication(VEHICLES.name), VEHICLES, CONTEXT, LOG)
    assert "Could not send the alert about deletions that are not detected" in caplog.text
