"""The status of a publication says whether it runs, what it sent last, what waits, and how far behind it is."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from builders.attempts import failed_send
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus
from contexture.operations.status.health import DagFacts
from contexture.operations.status.sources import Sources, Tables
from contexture.operations.status.status import StatusReport, statuses
from contexture.storage.conclusion import conclude
from contexture.storage.delivery import DeadLetterIndex
from contexture.storage.home import Home
from contexture.storage.inbox_writer import InboxWriter
from contexture.storage.incompleteness import Incompleteness
from contexture.storage.known_topics import LostTopics
from contexture.storage.state import StatePointer

LATER = NOON + timedelta(minutes=10)
ACTIVE = DagFacts(paused=False, active=False, next_run_at=None)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def status(storage: Home, dag: DagFacts | None = ACTIVE, *, configured: bool = True, **keys: object) -> StatusReport:
    files = {"vehicles": publication(**keys)} if configured else {}
    store = RunTables.of_home(storage.root)
    sources = Sources(storage, Tables(store), files, {"vehicles": dag} if dag else {}, LATER)
    (found,) = statuses(sources, ["vehicles"])
    return found


def test_a_publication_that_never_ran_is_ready(storage: Home) -> None:
    assert json.loads(status(storage).model_dump_json()) == {
        "publication": "vehicles",
        "running": True,
        "health": "never run",
        "reason": "",
        "suspended": False,
        "last_transaction": None,
        "pending": [],
        "attempt": None,
        "next_try_at": None,
        "lag": {"seconds": 0.0, "records": 0, "notifications": 0, "published_until": None},
        "dead_letters": {"topic": None, "last_run": None, "kept": None, "last_at": None, "outstanding": False},
        "deletions": {
            "detected": True,
            "incomplete_since": None,
            "incomplete_runs": 0,
            "reason": None,
            "next_step": None,
        },
        "topics": {"removed": [], "removed_count": 0, "noticed_at": None},
    }


def test_it_does_not_run_when_suspended_without_a_file_or_stopped(storage: Home) -> None:
    assert not status(storage, DagFacts(paused=True, active=False, next_run_at=None)).running
    assert not status(storage, configured=False).running
    assert status(storage, None).running
    outbox(storage, publication(), 1, [records("car1")], name="first000")
    storage.publication("vehicles").attempts.keep(failed_send("first000", state="stopped", next_at=None))
    stopped = status(storage)
    assert (stopped.running, stopped.health) == (False, "stopped")
    assert stopped.reason == "shard 1, attempt 1 of 11, stopped: no broker. Next: wait"


def test_a_concluded_run_says_what_was_sent_last_and_until_when_the_source_was_read(storage: Home) -> None:
    manifest = outbox(storage, publication(), 1, [records("car1", "car2")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "approved", reason="good")
    conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t")
    store = RunTables.of_home(storage.root)
    assert store is not None
    store.set_transaction(
        TransactionRow("vehicles", "first000", 0, 3, TransactionStatus.SENT, 2, 50, 2, 4711, None, NOON)
    )
    found = status(storage)
    assert found.last_transaction is not None
    assert found.last_transaction.model_dump() == {
        "outbox": "first000",
        "shard": 0,
        "number": 3,
        "source_transaction": 4711,
        "records": 2,
        "bytes": 50,
        "sent_at": NOON,
    }
    assert found.lag.seconds == 0
    assert found.lag.published_until == manifest.received_to


def test_what_waits_is_shown_with_attempt_next_try_and_age(storage: Home) -> None:
    manifest = outbox(storage, publication(), 1, [records("car1", "car2")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "approved", reason="good")
    storage.publication("vehicles").attempts.keep(failed_send("first000", attempt=3))
    found = status(storage)
    (pending,) = found.pending
    assert (pending.status, pending.records, pending.attempt, pending.attempts_allowed) == ("approved", 2, 3, 11)
    assert (found.running, found.attempt, found.next_try_at) == (True, 3, NOON + timedelta(seconds=5))
    assert manifest.received_from is not None
    assert found.lag.seconds == (LATER - manifest.received_from).total_seconds()
    assert found.lag.records == 2


def test_what_a_backfill_sends_again_makes_no_publication_late(storage: Home) -> None:
    made = outbox(storage, publication(), 1, [records("car1")], mode="backfill", interval=(NOON, NOON))
    assert made.received_from is not None
    assert status(storage).lag.seconds == 0


def test_removed_topics_are_reported_until_a_full_run_has_filled_them(storage: Home) -> None:
    lost = LostTopics(noticed_at=NOON, topics=("bikes", "cars"), count=2)
    pointer = StatePointer(outbox="first", concluded_at=NOON, full_run_due=lost.sentence, lost_topics=lost)
    storage.publication("vehicles").state.commit(pointer)
    found = status(storage, DagFacts(paused=False, active=False, next_run_at=None))
    assert (found.health, found.reason) == (
        "resync required",
        "bikes, cars were removed from Kafka, noticed at 2026-03-01 12:00:00 UTC",
    )
    assert found.topics.model_dump() == {"removed": ("bikes", "cars"), "removed_count": 2, "noticed_at": NOON}


def test_reads_that_are_incomplete_run_after_run_are_reported_while_it_runs_on(storage: Home) -> None:
    unseen = Incompleteness(since=NOON, runs=3, why="the walk is short", next_step="read again")
    storage.publication("vehicles").state.commit(StatePointer(outbox="gone", concluded_at=NOON, incomplete=unseen))
    found = status(storage)
    assert (found.running, found.health) == (True, "deletions not detected")
    assert found.deletions.model_dump() == {
        "detected": False,
        "incomplete_since": NOON,
        "incomplete_runs": 3,
        "reason": "the walk is short",
        "next_step": "read again",
    }


def test_notifications_that_wait_are_part_of_the_lag(storage: Home) -> None:
    arrived = NOON - timedelta(hours=1)
    writer = InboxWriter(
        storage.publication("vehicles").open_inbox_folder(), clock_ns=lambda: int(arrived.timestamp()) * 1_000_000_000
    )
    writer.submit({}, b"{}").result()
    writer.close()
    found = status(storage)
    assert (found.lag.notifications, found.lag.seconds) == (1, 70 * 60)


def test_what_can_never_be_sent_is_counted_of_the_last_run_and_of_all(storage: Home) -> None:
    manifest = outbox(storage, publication(), 1, [records("car1", "car2")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "approved", reason="good")
    conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t")
    storage.publication(manifest.publication).outbox(manifest.outbox).write_dead_letters(
        DeadLetterIndex(shards={0: (1,)})
    )
    store = RunTables.of_home(storage.root)
    assert store is not None
    for number in range(2):
        at = NOON + timedelta(minutes=number)
        row = TransactionRow("vehicles", f"o{number}", 0, 0, TransactionStatus.SENT, 2, 50, 2, None, None, at)
        store.set_transaction(row, dead_letters=1)
    assert status(storage, publish={"on_failure": "dead-letter"}).dead_letters.model_dump() == {
        "topic": "contexture.dead-letter.vehicles",
        "last_run": 1,
        "kept": 2,
        "last_at": NOON + timedelta(minutes=1),
        "outstanding": True,
    }
    # A file that was changed since hides nothing.
    assert (status(storage).dead_letters.topic, status(storage).dead_letters.kept) == (None, 2)


def test_a_damaged_note_of_dead_letters_hides_nothing_else(storage: Home) -> None:
    manifest = outbox(storage, publication(), 1, [records("car1")], name="first000")
    storage.publication("vehicles").outboxes.set_status("first000", "approved", reason="good")
    conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t")
    storage.write("vehicles/outbox/first000/dead_letters.json", b"{")
    assert (status(storage).dead_letters.last_run, status(storage).health) == (None, "idle")
