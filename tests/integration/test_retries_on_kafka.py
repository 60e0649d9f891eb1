"""Brokers away longer than they are waited for: counted, visible, and in the end every record is there once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from builders.outboxes import outbox, publication, records
from contexture.kafka import ClientSettings, read_committed
from contexture.monitoring import RunTables, TransactionStatus
from contexture.publications import Publication
from contexture.sending.target import KafkaTarget, Target
from contexture.storage.archive import Interval
from contexture.storage.delivery import SendAttempts
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.run_events import open_run_events
from contexture_airflow.steps.publish import AttemptsUsedUpError, build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KEYS = [b"car%02d" % number for number in range(40)]


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as cluster:
        yield cluster


class City:
    """An approved outbox of forty records, its home, and a Kafka that comes and goes."""

    def __init__(self, home: Path, bootstrap: str, name: str, *, ttl: int) -> None:
        self.storage = Home(str(home))
        self.settings = ClientSettings.from_extra({"bootstrap.servers": bootstrap})
        self.publication: Publication = publication(
            name=name,
            batches={"batch_ttl": ttl, "batch_retry_intervals": [300]},
        )
        self.outboxes = self.storage.publication(name).outboxes
        self.topic = f"topic-{name}"
        self.log: list[str] = []
        # Brokers that are there are waited for, however slow they are; tests that send them away wait a second.
        self.wait_seconds = 60

    def target(self, owner: Publication, interval: Interval | None) -> Target:
        publish = owner.publish.model_copy(update={"broker_wait_seconds": self.wait_seconds})
        owner = owner.model_copy(update={"publish": publish})
        return KafkaTarget(self.settings, owner, interval, self.log.append)

    def approve(self) -> Manifest:
        rows = [records(*[key.decode() for key in KEYS], topic=self.topic)]
        manifest = outbox(self.storage, self.publication, 1, rows)
        staged = StagedOutbox(
            publication=self.publication.name, run=manifest.run, outbox="outbox1", sequence=1, records=40, shards=(0,)
        )
        apply_verdict(
            self.storage.publication(staged.publication),
            staged,
            dry_run=False,
            target_for=self.target,
            report=self.log.append,
        )
        return manifest

    def send(self) -> int:
        """As the publish task does."""
        manifest = self.outboxes.manifest("outbox1")
        with open_run_events(self.storage, self.log.append) as events:
            shard_events = events.shard(manifest, 0)
            store = self.storage.publication(manifest.publication)
            attempts = build_shard_attempts(
                store, "outbox1", 0, self.publication, report=self.log.append, on_change=shard_events.attempts_changed
            )
            target = self.target(self.publication, None)
            return send_shard(store, manifest, 0, target, attempts, shard_events).records_sent

    def attempts(self) -> SendAttempts | None:
        return self.storage.publication(self.publication.name).attempts.of_shard("outbox1", 0)

    def attempt(self) -> int:
        found = self.attempts()
        return found.attempt if found else 0

    def keys(self) -> list[bytes]:
        return sorted(record.key or b"" for record in read_committed(self.settings, [self.topic]))

    def store(self) -> RunTables:
        found = RunTables.of_home(self.storage.root)
        assert found is not None
        return found


def until(condition: Callable[[], bool], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "in time"
        time.sleep(0.05)


OpenCity = Callable[..., City]


@pytest.fixture
def city(tmp_path: Path, own_kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> OpenCity:
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))

    def open_city(*, ttl: int) -> City:
        return City(tmp_path, own_kafka.bootstrap_servers, f"cars-{uuid4().hex[:8]}", ttl=ttl)

    return open_city


def test_attempts_are_counted_and_seen_while_the_broker_is_away_and_records_come_once(
    city: OpenCity, own_kafka: EmbeddedKafka
) -> None:
    cars = city(ttl=50)
    cars.approve()
    own_kafka.kill()
    cars.wait_seconds = 1
    sent: list[int] = []
    sender = threading.Thread(target=lambda: sent.append(cars.send()), daemon=True)
    sender.start()
    until(lambda: cars.attempt() >= 2)
    seen = cars.attempts()
    assert seen is not None
    assert (seen.allowed, seen.state, seen.intent) == (51, "waiting", "retry")
    assert any("shard 0: attempt 1 of 51, next at " in line for line in cars.log)
    until(lambda: [row.attempt for row in cars.store().attempts(cars.publication.name)][-1:] == [1])
    own_kafka.start()
    sender.join(240)
    assert sent == [40]
    assert cars.keys() == KEYS
    ended = cars.attempts()
    assert ended is not None
    assert ended.state == "sent"
    assert cars.store().sums(cars.publication.name).by_status == {TransactionStatus.SENT: 1}


def test_used_up_leaves_the_outbox_approved_and_the_next_settle_sends_it(
    city: OpenCity, own_kafka: EmbeddedKafka
) -> None:
    cars = city(ttl=1)
    cars.approve()
    own_kafka.kill()
    cars.wait_seconds = 1
    with pytest.raises(AttemptsUsedUpError, match="used up after 2 attempts"):
        cars.send()
    assert cars.outboxes.status("outbox1").status == "approved"
    assert [each.outbox for each in cars.outboxes.pending()] == ["outbox1"]
    noted = cars.attempts()
    assert noted is not None
    assert noted.describe() == "attempt 2 of 2, exhausted"
    with pytest.raises(AttemptsUsedUpError, match="used up after 2 attempts"):
        finish_open_transaction(
            cars.storage.publication(cars.publication.name),
            cars.publication,
            RunRequest(run_id="early"),
            cars.target,
            cars.log.append,
        )
    own_kafka.start()
    cars.wait_seconds = 60
    plan = finish_open_transaction(
        cars.storage.publication(cars.publication.name),
        cars.publication,
        RunRequest(run_id="next"),
        cars.target,
        cars.log.append,
    )
    assert plan.settled == ("outbox1",)
    assert cars.outboxes.status("outbox1").status == "concluded"
    assert cars.keys() == KEYS


TASK = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
import test_retries_on_kafka as retries
city = retries.City(Path({home!r}), {bootstrap!r}, {name!r}, ttl=50)
city.wait_seconds = 1
city.send()
"""


def test_a_task_after_a_kill_goes_on_at_the_same_attempt(city: OpenCity, own_kafka: EmbeddedKafka) -> None:
    cars = city(ttl=50)
    cars.approve()
    own_kafka.kill()
    cars.wait_seconds = 1
    script = TASK.format(
        path=[str(Path(__file__).parent), *sys.path],
        home=cars.storage.root,
        bootstrap=own_kafka.bootstrap_servers,
        name=cars.publication.name,
    )
    with subprocess.Popen([sys.executable, "-c", script]) as task:
        until(lambda: cars.attempt() >= 2)
        task.kill()
    reached = cars.attempt()
    sent: list[int] = []
    again = threading.Thread(target=lambda: sent.append(cars.send()), daemon=True)
    again.start()
    until(lambda: any(f"shard 0: attempt {reached + 1} of 51, next at " in line for line in cars.log))
    assert not any("attempt 1 of 51" in line for line in cars.log)
    own_kafka.start()
    again.join(240)
    assert sent == [40]
    assert cars.keys() == KEYS


def test_tables_that_are_lost_hold_the_same_transactions_again(
    city: OpenCity, own_kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cars = city(ttl=1)
    cars.approve()
    cars.send()
    (lost,) = cars.store().transactions(cars.publication.name)
    for file in tmp_path.glob("operations.sqlite*"):
        file.unlink()
    assert cars.store().transactions(cars.publication.name) == []
    files = tmp_path / "publications"
    files.mkdir()
    (files / "cars.yaml").write_text(cars.publication.model_dump_json(exclude_defaults=True))
    connection = {"conn_type": "kafka", "extra": own_kafka.client_settings()}
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(files))
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))

    command = [sys.executable, "-m", "contexture.cli", "tables", "rebuild", cars.publication.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{cars.publication.name}: 1 transactions sent, 0 pending")
    (again,) = cars.store().transactions(cars.publication.name)
    assert abs(again.updated_at - lost.updated_at) < timedelta(seconds=30)
    assert replace(again, updated_at=lost.updated_at) == lost
