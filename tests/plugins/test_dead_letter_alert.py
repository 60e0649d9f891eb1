"""A run with dead letters sends an alert, though it has ended well."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.outboxes import outbox, publication, records  # noqa: E402
from contexture.storage.delivery import DeadLetterIndex  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_airflow.alerts.run_alerts import alert_dead_letters  # noqa: E402
from fakes.mail_server import MailServer  # noqa: E402

SetConnection = Callable[..., None]
VEHICLES = publication(notify={"mail": ["ops@example.org"]}, publish={"on_failure": "dead-letter"})
CONTEXT: Any = {
    "ti": SimpleNamespace(dag_id="publish_vehicles", log_url=""),
    "dag_run": SimpleNamespace(run_id="manual__1"),
}
LOG = logging.getLogger(__name__)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


@pytest.fixture
def server(set_connection: SetConnection) -> Iterator[MailServer]:
    with MailServer() as running:
        extra = {"from_email": "contexture@example.org", "disable_ssl": True, "disable_tls": True, "timeout": 5}
        set_connection("contexture_mail", conn_type="smtp", host="127.0.0.1", port=running.port, extra=extra)
        yield running


def test_people_hear_how_many_records_lie_where(storage: Home, server: MailServer) -> None:
    manifest = outbox(storage, VEHICLES, 1, [records("car1", "car2"), records("car3")])
    storage.publication(manifest.publication).outbox(manifest.outbox).write_dead_letters(
        DeadLetterIndex(shards={0: (0,), 1: (0,)})
    )
    for _ in range(2):
        alert_dead_letters(storage.publication(VEHICLES.name), VEHICLES, ["outbox1"], CONTEXT, LOG)
    # Two alerts within the hour are one mail.
    (mail,) = server.mails
    assert mail.message["Subject"] == "[Contexture] vehicles: dead letters"
    text = mail.body
    assert "2 records can never be sent; they are in the topic contexture.dead-letter.vehicles" in text
    assert "has sent records to the dead-letter topic" in text
    assert "What to do next:</b> read the reason with contexture dead-letters vehicles" in text


def test_a_run_without_dead_letters_sends_no_alert(storage: Home, server: MailServer) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    alert_dead_letters(storage.publication(VEHICLES.name), VEHICLES, ["outbox1"], CONTEXT, LOG)
    assert server.mails == []


def test_a_run_that_can_not_be_looked_at_does_not_fail(storage: Home, caplog: pytest.LogCaptureFixture) -> None:
    storage.publication(VEHICLES.name).outbox("damaged").write("dead_letters.json", b"{")
    alert_dead_letters(storage.publication(VEHICLES.name), VEHICLES, ["damaged"], CONTEXT, LOG)
    assert "Could not send the alert about dead letters" in caplog.text
