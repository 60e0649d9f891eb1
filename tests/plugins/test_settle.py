"""What settle does with outboxes of earlier runs, and what it plans."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from builders.attempts import failed_send
from builders.fake_target import FakeTarget
from builders.outboxes import NOON, outbox, publication, records
from contexture.errors import RetriableError
from contexture.kafka import BrokersAwayError
from contexture.storage.home import Home
from contexture_airflow.run import RunPlan, RunRequest
from contexture_airflow.steps.settle import finish_open_transaction

VEHICLES = publication()
INTERVAL = (NOON, NOON + timedelta(minutes=5))


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


@pytest.fixture
def kafka() -> FakeTarget:
    return FakeTarget()


def run_settle(storage: Home, kafka: FakeTarget, **request: object) -> RunPlan:
    asked = RunRequest.model_validate({"run_id": "scheduled__2026-03-01T12:00:00+00:00", **request})
    return finish_open_transaction(storage.publication(VEHICLES.name), VEHICLES, asked, kafka, lambda sentence: None)


def status(storage: Home, name: str) -> str:
    return storage.publication("vehicles").outboxes.status(name).status


def approve(storage: Home, name: str) -> None:
    storage.publication("vehicles").outboxes.set_status(name, "approved", reason="test")


def test_the_first_run_is_full_and_has_number_one(storage: Home, kafka: FakeTarget) -> None:
    plan = run_settle(storage, kafka)
    assert (plan.mode, plan.sequence, plan.why, plan.settled) == ("full", 1, "the first run", ())


def test_an_approved_outbox_is_sent_and_concluded_before_anything_new(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1"), records("car2")])
    approve(storage, "outbox1")
    plan = run_settle(storage, kafka)
    assert [key for _, key, _ in kafka.sent] == [b"car1", b"car2"]
    assert status(storage, "outbox1") == "concluded"
    assert (plan.settled, plan.mode, plan.sequence) == (("outbox1",), "changes", 2)


def test_what_was_sent_already_is_not_sent_again(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1", "car2", "car3")])
    approve(storage, "outbox1")
    kafka.stand(0, "outbox1", 1, 2)
    run_settle(storage, kafka)
    assert [key for _, key, _ in kafka.sent] == [b"car3"]


def test_several_are_finished_in_their_order(storage: Home, kafka: FakeTarget) -> None:
    for sequence in (2, 1):
        outbox(storage, VEHICLES, sequence, [records(f"car{sequence}")])
        approve(storage, f"outbox{sequence}")
    plan = run_settle(storage, kafka)
    assert [key for _, key, _ in kafka.sent] == [b"car1", b"car2"]
    assert plan.sequence == 3


def test_one_that_was_never_judged_is_rejected_and_never_sent(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    run_settle(storage, kafka)
    assert status(storage, "outbox1") == "rejected"
    assert kafka.sent == []


def test_one_that_can_not_be_sent_stays_in_the_way_and_each_run_has_all_attempts(
    storage: Home, kafka: FakeTarget
) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage, "outbox1")
    for _ in range(2):
        kafka.failures = [RetriableError("no broker", next_step="wait")] * 3
        with pytest.raises(RetriableError, match="no broker"):
            run_settle(storage, kafka)
    assert status(storage, "outbox1") == "approved"
    assert kafka.waited_ms == [10, 20, 10, 20]


def test_settle_goes_on_where_a_killed_publish_stopped_counting(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage, "outbox1")
    storage.publication("vehicles").attempts.keep(failed_send("outbox1", shard=0, attempt=2, allowed=3))
    kafka.failures = [RetriableError("no broker", next_step="wait")]
    with pytest.raises(RetriableError, match="used up after 3 attempts"):
        run_settle(storage, kafka)
    assert kafka.waited_ms == []


def test_brokers_that_are_away_before_anything_is_sent_use_up_attempts(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage, "outbox1")
    away = [BrokersAwayError("no broker", next_step="wait")] * 3

    def ensure_topics(topics: object) -> None:
        raise away.pop()

    kafka.ensure_topics = ensure_topics  # type: ignore[assignment]
    with pytest.raises(RetriableError, match="used up after 3 attempts"):
        run_settle(storage, kafka)
    assert away == []


def test_one_for_another_cluster_is_abandoned_and_owes_a_full_run(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage, "outbox1")
    run_settle(storage, kafka)
    outbox(storage, VEHICLES, 2, [records("car2")])
    approve(storage, "outbox2")
    elsewhere = FakeTarget(cluster_id="cluster-b")
    plan = run_settle(storage, elsewhere)
    assert status(storage, "outbox2") == "abandoned"
    assert elsewhere.sent == []
    assert plan.mode == "full"


def test_one_that_was_made_for_the_new_cluster_is_finished_there(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage, "outbox1")
    run_settle(storage, kafka)
    elsewhere = FakeTarget(cluster_id="cluster-b")
    outbox(storage, VEHICLES, 2, [records("car1", "car2")], mode="full", cluster="cluster-b")
    approve(storage, "outbox2")
    plan = run_settle(storage, elsewhere)
    assert [key for _, key, _ in elsewhere.sent] == [b"car1", b"car2"]
    assert (status(storage, "outbox2"), plan.mode) == ("concluded", "changes")


def test_a_backfill_leaves_the_outboxes_of_normal_runs_alone(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    outbox(storage, VEHICLES, 2, [records("car2")])
    approve(storage, "outbox2")
    plan = run_settle(storage, kafka, interval=INTERVAL)
    assert (status(storage, "outbox1"), status(storage, "outbox2")) == ("prepared", "approved")
    assert (plan.mode, plan.sequence, kafka.sent) == ("backfill", 1, [])
    assert kafka.opened_for == [("vehicles", INTERVAL)]


def test_a_normal_run_leaves_the_outboxes_of_backfills_alone(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")], name="past", run="past", mode="backfill", interval=INTERVAL)
    approve(storage, "past")
    run_settle(storage, kafka)
    assert status(storage, "past") == "approved"


def test_a_finished_backfill_does_not_touch_state(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 7, [records("car1")], name="past", run="past", mode="backfill", interval=INTERVAL)
    approve(storage, "past")
    run_settle(storage, kafka, interval=INTERVAL)
    assert status(storage, "past") == "concluded"
    assert storage.publication("vehicles").state.pointer().sequence == 0


def test_the_ledger_may_be_ahead_of_state(storage: Home, kafka: FakeTarget) -> None:
    kafka.stand(0, "of another instance", 41, 10)
    assert run_settle(storage, kafka).sequence == 42


def test_a_run_that_is_cleared_reads_anew(storage: Home, kafka: FakeTarget) -> None:
    first = run_settle(storage, kafka)
    outbox(storage, VEHICLES, first.sequence, [records("car1")], run=first.run)
    assert run_settle(storage, kafka).run != first.run
