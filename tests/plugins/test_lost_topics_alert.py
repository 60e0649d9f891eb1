"""People are alerted when a task notices that a topic was removed."""

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
from contexture.errors import RetriableError  # noqa: E402
from contexture.storage.conclusion import require_topics_again  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_airflow.alerts.run_alerts import alerting_lost_topics  # noqa: E402
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


def test_people_are_alerted_by_the_task_that_noticed_it_and_by_no_later_one(storage: Home, server: MailServer) -> None:
    with alerting_lost_topics(storage.publication(VEHICLES.name), VEHICLES, CONTEXT, LOG):
        require_topics_again(storage.publication("vehicles"), ["cars", "bikes"], NOON)
    with alerting_lost_topics(storage.publication(VEHICLES.name), VEHICLES, CONTEXT, LOG):
        pass
    (mail,) = server.mails
    assert mail.message["Subject"] == "[Contexture] vehicles: topic removed"
    assert "has found that a topic was removed" in mail.body
    assert "bikes, cars were removed from Kafka, noticed at 2026-03-01 12:00:00 UTC" in mail.body
    assert "A full run makes the topic again" in mail.body


def test_a_task_that_notices_it_and_fails_alerts_too(storage: Home, server: MailServer) -> None:
    def fail() -> None:
        with alerting_lost_topics(storage.publication(VEHICLES.name), VEHICLES, CONTEXT, LOG):
            require_topics_again(storage.publication("vehicles"), ["cars"], NOON)
            raise RetriableError("no broker", next_step="wait")

    with pytest.raises(RetriableError):
        fail()
    assert len(server.mails) == 1


def test_a_state_that_can_not_be_read_fails_no_task(storage: Home) -> None:
    storage.write("vehicles/state/CURRENT", b"{")
    with alerting_lost_topics(storage.publication(VEHICLES.name), VEHICLES, CONTEXT, LOG):
        pass
