"""A run that is not published in time is mailed about by a live Airflow, once, while it goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from contexture_sandbox.airflow.client import DagRun
from e2e.installation import PATIENCE_SECONDS, Installation, installation_below, until
from fakes.mail_server import MailServer, Received

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

CARS = """\
name: cars
schedule: null
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}
topics: {naming: fixed, topics: [cars]}
resync: {on_startup: none}
notify: {mail: [ops@example.org], published_within_minutes: 1}
"""
SLOW_SECONDS = 25.0


@dataclass
class Story:
    """What was seen."""

    started: DagRun
    state_when_mailed: str
    seconds_until_mailed: float
    mails: list[Received]
    ended: DagRun


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A run whose source answers so slowly that it is still under way after its minute."""
    folder = tmp_path_factory.mktemp("deadline")
    with MailServer() as server, installation_below(folder, entities=60, cars=CARS) as platform:
        # In Airflow's database, as most connections are: the process that calls the notifier must find it there.
        add_mail_connection(platform, server.port)
        platform.stack.client.await_dags(["publish_cars"])
        yield late(platform, server)


def add_mail_connection(platform: Installation, port: int) -> None:
    extra = '{"from_email": "contexture@example.org", "disable_ssl": true, "disable_tls": true, "timeout": 5}'
    server = {"connection_id": "contexture_mail", "conn_type": "smtp", "host": "127.0.0.1", "port": port}
    answer = platform.ask("POST", "/api/v2/connections", {**server, "extra": extra})
    assert answer.status_code == httpx.codes.CREATED, answer.text


def late(platform: Installation, server: MailServer) -> Story:
    """Starts the run, waits for the mail, lets the source be quick again, and waits for the run's end."""
    client, faults = platform.stack.client, platform.stack.broker.faults
    faults.delay_seconds = SLOW_SECONDS
    begun = time.monotonic()
    started = client.trigger("publish_cars")
    until(lambda: server.mails or None, "mail", PATIENCE_SECONDS)
    seconds = time.monotonic() - begun
    (run,) = platform.runs("publish_cars")
    faults.clear()
    ended = client.await_run(started.dag_id, started.run_id, seconds=PATIENCE_SECONDS)
    return Story(started, run.state, seconds, list(server.mails), ended)


def test_people_are_mailed_once_while_the_run_goes_on(story: Story) -> None:
    assert story.state_when_mailed == "running"
    assert story.seconds_until_mailed > 55
    (mail,) = story.mails
    assert mail.to == ("ops@example.org",)
    assert mail.message["Subject"] == "[Contexture] cars: not published in time"


def test_the_mail_says_what_is_safe_and_leads_to_the_run(story: Story) -> None:
    (mail,) = story.mails
    assert "the run was queued more than 1 min ago and is still running" in mail.body
    assert "Nothing is lost or skipped: the run continues" in mail.body
    assert "/dags/publish_cars/runs/manual__" in mail.body


def test_the_run_comes_to_its_good_end(story: Story) -> None:
    assert story.ended.state == "success"
