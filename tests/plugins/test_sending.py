"""Retries of sends are counted where they outlive the task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from builders.fake_target import FakeTarget
from builders.outboxes import outbox, publication, records
from contexture.errors import ConfigurationError
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.storage import Storage
from contexture_airflow.steps.sending import Delays, OutboxAttempts, send_shard, topic_counts


class Counter:
    """Attempts in memory."""

    def __init__(self, used: int = 0) -> None:
        self.value = used

    def used(self) -> int:
        return self.value

    def count(self, attempts: int) -> None:
        self.value = attempts


def delays(counter: Counter, ttl: int = 3) -> Delays:
    return Delays(publication(batches={"batch_ttl": ttl, "batch_retry_intervals": [10, 20]}), counter)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


def test_each_delay_is_counted_before_it_is_waited() -> None:
    counter = Counter()
    waits = iter(delays(counter))
    assert (next(waits), counter.value) == (10, 1)
    assert (next(waits), counter.value) == (20, 2)


def test_counting_goes_on_after_a_restart_of_the_task() -> None:
    again = delays(Counter(used=2))
    assert list(again) == [20]
    assert again.used_up


@pytest.mark.parametrize(("ttl", "left"), [(0, []), (3, [])])
def test_used_up_is_used_up(ttl: int, left: list[int]) -> None:
    spent = delays(Counter(used=3), ttl=ttl)
    assert list(spent) == left
    assert spent.used_up


def test_minus_one_goes_on_for_ever() -> None:
    counter = Counter(used=1000)
    endless = delays(counter, ttl=-1)
    assert (next(iter(endless)), counter.value, endless.used_up) == (20, 1001, False)


def test_the_outbox_shows_the_shard_that_failed_most(storage: Storage) -> None:
    outbox(storage, publication(), 1, [records("car1")])
    attempts = OutboxAttempts(Outboxes(storage, "vehicles"), "outbox1")
    attempts.count(4)
    attempts.count(2)
    assert attempts.used() == 4


@pytest.mark.parametrize("end", ["prepared", "rejected", "abandoned"])
def test_only_an_approved_outbox_is_sent(storage: Storage, end: str, move: Callable[..., None]) -> None:
    manifest, kafka = outbox(storage, publication(), 1, [records("car1")]), FakeTarget()
    move(storage, "outbox1", end)
    with pytest.raises(ConfigurationError, match=f"outbox outbox1 is {end}"):
        send_shard(storage, manifest, 0, kafka, delays(Counter()))
    assert kafka.sent == []


@pytest.fixture
def move() -> Callable[..., None]:
    def moved(storage: Storage, name: str, to: str) -> None:
        if to != "prepared":
            Outboxes(storage, "vehicles").move(name, to, reason="test")  # type: ignore[arg-type]

    return moved


def test_topics_are_counted_over_all_shards(storage: Storage) -> None:
    manifest = outbox(storage, publication(), 1, [records("car1", "car2"), records("bike1", topic="bikes")])
    assert topic_counts(storage, manifest) == {"bikes": 1, "cars": 2}
