"""Failed sends are kept by shard, beside the outbox, and described in one clause."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.attempts import failed_send
from builders.outboxes import outbox, publication, records
from contexture.storage.delivery import AttemptLog, SendAttempts, most_urgent
from contexture.storage.home import Home


@pytest.fixture
def log(tmp_path: Path) -> AttemptLog:
    return Home(str(tmp_path)).publication("vehicles").attempts


def test_shards_do_not_overwrite_each_other(log: AttemptLog) -> None:
    for shard in (10, 2):
        log.keep(failed_send("outbox1", shard=shard, attempt=shard))
    assert [(each.shard, each.attempt) for each in log.of_outbox("outbox1")] == [(2, 2), (10, 10)]
    assert log.of_shard("outbox1", 3) is None


def test_the_last_document_of_a_shard_counts(log: AttemptLog) -> None:
    log.keep(failed_send("outbox1", attempt=1))
    log.keep(failed_send("outbox1", attempt=2))
    assert log.of_outbox("outbox1") == (failed_send("outbox1", attempt=2),)


def test_forgotten_is_forgotten_and_forgetting_nothing_is_no_error(log: AttemptLog) -> None:
    log.keep(failed_send("outbox1"))
    log.forget("outbox1")
    log.forget("outbox1")
    assert log.of_outbox("outbox1") == ()


def test_the_story_of_the_outbox_is_not_touched(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    outbox(storage, publication(), 1, [records("car1")])
    before = storage.publication("vehicles").outboxes.status("outbox1")
    storage.publication("vehicles").attempts.keep(failed_send("outbox1"))
    assert storage.publication("vehicles").outboxes.status("outbox1") == before


@pytest.mark.parametrize(
    ("changes", "clause"),
    [
        ({"attempt": 3}, "attempt 3 of 11, next at 12:00:05Z"),
        ({"attempt": 40, "allowed": None}, "attempt 40 of without end, next at 12:00:05Z"),
        ({"attempt": 11, "state": "exhausted", "next_at": None}, "attempt 11 of 11, exhausted"),
        ({"attempt": 2, "state": "stopped", "next_at": None}, "attempt 2 of 11, stopped"),
        ({"attempt": 1, "state": "sent", "next_at": None}, "attempt 1 of 11, sent"),
    ],
)
def test_the_attempts_are_described_in_one_clause(changes: dict[str, object], clause: str) -> None:
    assert failed_send("outbox1", **changes).describe() == clause


def test_the_shard_that_waits_for_nothing_is_the_most_urgent() -> None:
    sends: list[SendAttempts] = [
        failed_send("outbox1", shard=0, attempt=9),
        failed_send("outbox1", shard=1, attempt=2, state="stopped", next_at=None),
        failed_send("outbox1", shard=2, attempt=10, state="sent", next_at=None),
    ]
    assert most_urgent(sends) == sends[1]
    assert most_urgent(sends[2:]) is None
