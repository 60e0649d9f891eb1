"""Contexture's own events are sent once each, whatever is tried again, and the tasks note them as they go."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders.attempts import failed_send
from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables, RunTableWriter
from contexture.monitoring.alerts import Failure
from contexture.monitoring.own_events import EventType, OwnEvent
from contexture.publications import Publication
from contexture.storage.home import Home
from contexture_airflow.run import RunPlan, RunRequest, StagedOutbox
from contexture_airflow.run_events import RunEvents, open_run_events
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_airflow.steps.stage import place_order
from contexture_airflow.steps.stage_operations import stage_operations

SECRET = "s3cret-of-a-driver"


def silent(sentence: str) -> None:
    """Drops the sentence."""


def audit(**changes: Any) -> Publication:
    given = {"name": "audit", "source": {"kind": "operations"}, "topics": {"topics": ["ops", "ops-too"]}}
    return Publication.model_validate({**given, **changes})


class Audit:
    """A publication of events, its home and a Kafka in memory."""

    def __init__(self, home: Path) -> None:
        self.storage = Home(str(home))
        found = RunTables.of_home(self.storage.root)
        assert found is not None
        self.store, self.kafka, self.publication = found, FakeTarget(), audit()

    def happens(self, outbox_id: str) -> None:
        data = {"outbox": outbox_id, "reason": "no longer wanted", "abandoned_by": "ana"}
        self.store.append_event(OwnEvent(EventType.OUTBOX_ABANDONED, "vehicles", NOON, outbox_id, data))

    def planned(self, run_id: str, **request: Any) -> tuple[RunRequest, RunPlan]:
        asked = RunRequest.model_validate({"run_id": run_id, **request})
        return asked, finish_open_transaction(
            self.storage.publication(self.publication.name), self.publication, asked, self.kafka, silent
        )

    def staged(self, asked: RunRequest, plan: RunPlan) -> StagedOutbox:
        order = place_order(self.storage.publication(self.publication.name), self.publication, asked, plan, self.kafka)
        return stage_operations(self.storage.publication(order.publication), asked, order, silent)

    def finished(self, staged: StagedOutbox) -> None:
        manifest = self.storage.publication("audit").outboxes.manifest(staged.outbox)
        for shard in apply_verdict(
            self.storage.publication(staged.publication), staged, dry_run=False, target_for=self.kafka, report=silent
        ):
            attempts = build_shard_attempts(self.storage.publication("audit"), staged.outbox, shard, self.publication)
            send_shard(self.storage.publication(manifest.publication), manifest, shard, self.kafka, attempts)
        assert (
            conclude_run(
                self.storage.publication(staged.publication), staged, self.kafka, silent, now=datetime.now(UTC)
            )
            is not None
        )

    def ran(self, run_id: str, **request: Any) -> StagedOutbox:
        staged = self.staged(*self.planned(run_id, **request))
        self.finished(staged)
        return staged

    def sent(self) -> list[tuple[str, str]]:
        """Topic and outbox of each event in Kafka, in order."""
        return [(topic, json.loads(value or b"")["outbox"]) for topic, _, value in self.kafka.sent]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Audit:
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    return Audit(tmp_path)


def test_each_run_sends_what_happened_since_the_last_one_to_every_topic(home: Audit) -> None:
    home.happens("a")
    home.happens("b")
    assert home.ran("run1").records == 4
    assert home.sent() == [("ops", "a"), ("ops-too", "a"), ("ops", "b"), ("ops-too", "b")]
    assert home.ran("run2").records == 0
    home.happens("c")
    home.ran("run3")
    assert home.sent()[4:] == [("ops", "c"), ("ops-too", "c")]


def test_a_retry_of_stage_prepares_the_same_outbox_though_more_has_happened(home: Audit) -> None:
    home.happens("a")
    asked, plan = home.planned("run1")
    first = home.staged(asked, plan)
    home.happens("b")
    assert home.staged(asked, plan) == first
    home.finished(first)
    home.ran("run2")
    assert [outbox_id for topic, outbox_id in home.sent() if topic == "ops"] == ["a", "b"]


def test_a_run_that_was_rejected_or_lost_its_way_is_published_by_the_next_one(home: Audit) -> None:
    home.happens("a")
    home.staged(*home.planned("run1"))
    home.happens("b")
    home.ran("run2")
    assert [outbox_id for topic, outbox_id in home.sent() if topic == "ops"] == ["a", "b"]


def test_events_of_a_dry_run_are_published_by_the_next_one_though_nothing_has_happened_since(home: Audit) -> None:
    home.happens("a")
    dry = home.staged(*home.planned("run1"))
    apply_verdict(home.storage.publication(dry.publication), dry, dry_run=True, target_for=home.kafka, report=silent)
    assert home.ran("run2").records == 2
    assert home.sent() == [("ops", "a"), ("ops-too", "a")]


def test_an_outbox_that_was_approved_is_finished_first(home: Audit) -> None:
    home.happens("a")
    staged = home.staged(*home.planned("run1"))
    apply_verdict(
        home.storage.publication(staged.publication), staged, dry_run=False, target_for=home.kafka, report=silent
    )
    home.happens("b")
    home.ran("run2")
    assert [outbox_id for topic, outbox_id in home.sent() if topic == "ops"] == ["a", "b"]


def test_a_full_run_sends_all_that_is_still_held_again_with_the_same_ids(home: Audit) -> None:
    home.happens("a")
    first = home.ran("run1")
    again = home.ran("run2", mode="full")
    assert [outbox_id for topic, outbox_id in home.sent() if topic == "ops"] == ["a", "a"]
    assert ids(home, first) == ids(home, again)


def ids(home: Audit, staged: StagedOutbox) -> list[bytes]:
    path = f"{PublicationPaths('audit').shard(staged.outbox, 0)}/part-00000.parquet"
    found: list[bytes] = pq.read_table(home.storage.path(path)).column("header:ce_id").to_pylist()
    return found


def test_a_changed_file_sends_nothing_again(home: Audit) -> None:
    home.happens("a")
    home.ran("run1")
    home.publication = audit(message={"envelope": "cloudevents-structured"})
    home.happens("b")
    home.ran("run2")
    assert len(home.kafka.sent) == 4
    event = json.loads(home.kafka.sent[-1][2] or b"")
    assert (event["type"], event["data"]["outbox"]) == ("contexture.operations.outbox.abandoned", "b")


def test_transactions_are_cut_as_the_publication_says_and_the_watermark_moves_with_conclude(home: Audit) -> None:
    home.publication = audit(publish={"transaction_records": 3})
    for name in "abc":
        home.happens(name)
    staged = home.staged(*home.planned("run1"))
    assert home.storage.publication("audit").outboxes.manifest(staged.outbox).transactions == 2
    assert home.storage.publication("audit").state.pointer().watermark is None
    home.finished(staged)
    last = home.store.events_after(0, limit=10)[-1]
    assert home.storage.publication("audit").state.pointer().watermark == str(last.position)


def test_a_backfill_is_refused_with_what_to_do_instead(home: Audit) -> None:
    interval = (NOON, NOON + timedelta(minutes=5))
    with pytest.raises(ConfigurationError, match=r"cannot be sent again by intervals\. Next: start a run in mode full"):
        home.staged(*home.planned("run1", interval=interval))


def own_events(home: Audit) -> list[tuple[str, dict[str, Any]]]:
    return [(event.type.removeprefix("contexture.operations."), json.loads(event.data)) for event in events(home)]


def events(home: Audit) -> list[Any]:
    return home.store.events_after(0, limit=100)


def test_a_run_notes_who_started_it_and_that_its_configuration_changed(home: Audit) -> None:
    asked = {"run_id": "manual__1", "run_type": "manual", "triggered_by": "ana", "reason": "a try", "mode": "full"}
    with open_run_events(home.storage, silent) as run_events:
        finish_open_transaction(
            home.storage.publication("vehicles"),
            publication(),
            RunRequest.model_validate(asked),
            home.kafka,
            silent,
            run_events,
        )
    assert own_events(home) == [
        (
            "run.started",
            {
                "run_id": "manual__1",
                "run_type": "manual",
                "mode": "full",
                "sequence": 1,
                "why": "the first run",
                "triggered_by": "ana",
                "reason": "a try",
                "dry_run": False,
            },
        )
    ]
    state = home.storage.publication("vehicles").state
    state.commit(state.pointer().model_copy(update={"fingerprint": "before", "outbox": "outbox1"}))
    with open_run_events(home.storage, silent) as run_events:
        finish_open_transaction(
            home.storage.publication("vehicles"),
            publication(),
            RunRequest(run_id="manual__2"),
            home.kafka,
            silent,
            run_events,
        )
    (_, changed), (kind, _) = own_events(home)[1:]
    assert (changed["fingerprint_before"], changed["mode"], kind) == ("before", "full", "run.started")


def test_failures_stopped_sends_and_ends_are_noted_without_data(home: Audit) -> None:
    manifest = outbox(home.storage, publication(), 1, [records(SECRET)])
    failure = Failure("vehicles", "manual__1", "publish[0]", NOON, "no broker", "wait", "", "")
    with open_run_events(home.storage, silent) as run_events:
        shard_events = run_events.shard(manifest, 0)
        shard_events.attempts_changed(failed_send("outbox1"))
        shard_events.attempts_changed(failed_send("outbox1", attempt=11, state="exhausted", next_at=None))
        run_events.run_failed(failure)
        run_events.run_concluded(publication(), "run1", "manual__1", "outbox1", {"outbox": "outbox1", "records": 1})
        run_events.run_concluded(publication(), "run1", "manual__1", "outbox1", {"outbox": "outbox1", "records": 1})
    (stopped, failed, ended) = own_events(home)
    assert (stopped[0], stopped[1]["state"], stopped[1]["attempt"]) == ("sending.stopped", "exhausted", 11)
    assert (failed[0], failed[1]["kind"], failed[1]["next_step"]) == ("run.failed", "run failed", "wait")
    assert ended == (
        "run.succeeded",
        {"run_id": "manual__1", "outbox": "outbox1", "concluded": True, "counts": {"records": 1}},
    )
    assert SECRET not in "".join(event.data for event in events(home))


def test_runs_that_publish_events_append_none_for_the_next_one(home: Audit) -> None:
    with open_run_events(home.storage, silent) as run_events:
        finish_open_transaction(
            home.storage.publication(audit().name),
            audit(),
            RunRequest(run_id="manual__1"),
            home.kafka,
            silent,
            run_events,
        )
        run_events.run_concluded(audit(), "run1", "manual__1", "outbox1", {"records": 1})
    assert events(home) == []


def test_without_tables_nothing_is_noted_and_nothing_fails() -> None:
    with RunTableWriter(None) as tables:
        RunEvents(tables).run_concluded(publication(), "run1", "manual__1", "outbox1", None)


@pytest.mark.airflow
def test_the_operator_hands_on_what_it_prepared(home: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("airflow.sdk")
    from contexture_airflow.operators.stage_operations import StageOperationsOperator
    from contexture_airflow.task_context import run_request

    monkeypatch.setenv("CONTEXTURE_HOME", home.storage.root)
    home.happens("a")
    _, plan = home.planned("manual__1")
    run = SimpleNamespace(run_id="manual__1", run_type="manual", triggering_user_name="ana")
    operator = StageOperationsOperator(task_id="stage", publication=home.publication, plan=plan.to_xcom())
    context: Any = {"params": {"mode": "auto"}, "dag_run": run}
    staged = StagedOutbox.from_xcom(operator.execute(context))
    assert (run_request(context).triggered_by, run_request(context).run_type) == ("ana", "manual")
    assert (staged.publication, staged.run, staged.records, staged.shards) == ("audit", plan.run, 2, (0,))
