"""What Contexture itself did, on a real broker: a run of cars, then a run of what happened in it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from builders.outboxes import publication
from contexture.kafka import ClientSettings, read_committed
from contexture.operations.verification.topics import KafkaTopics
from contexture.operations.verification.verify import verify
from contexture.publications import Publication
from contexture.records.cloudevents import decode
from contexture.sending.target import KafkaTarget, Target
from contexture.storage.archive import Interval
from contexture.storage.home import Home
from contexture_airflow.run import RunRequest
from contexture_airflow.run_events import open_run_events
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_airflow.steps.stage import place_order
from contexture_airflow.steps.stage_operations import stage_operations
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = pytest.mark.integration


def test_events_of_a_run_are_read_back_once_as_cloud_events(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    settings = ClientSettings.from_extra(kafka.client_settings())
    storage, log = Home(str(tmp_path)), print
    topic, name = f"ops-{uuid4().hex[:8]}", f"audit-{uuid4().hex[:8]}"
    cars = publication(name=f"cars-{uuid4().hex[:8]}")
    audit = Publication.model_validate({"name": name, "source": {"kind": "operations"}, "topics": {"topics": [topic]}})

    def target(owner: Publication, interval: Interval | None) -> Target:
        return KafkaTarget(settings, owner, interval, log)

    with open_run_events(storage, log) as events:
        finish_open_transaction(
            storage.publication(cars.name),
            cars,
            RunRequest(run_id="manual__1", triggered_by="ana"),
            target,
            log,
            events,
        )
    for run_id in ("first", "second"):
        asked = RunRequest(run_id=run_id)
        plan = finish_open_transaction(storage.publication(audit.name), audit, asked, target, log)
        staged = stage_operations(
            storage.publication(place_order(storage.publication(audit.name), audit, asked, plan, target).publication),
            asked,
            place_order(storage.publication(audit.name), audit, asked, plan, target),
            log,
        )
        manifest = storage.publication(name).outboxes.manifest(staged.outbox)
        for shard in apply_verdict(
            storage.publication(staged.publication), staged, dry_run=False, target_for=target, report=log
        ):
            attempts = build_shard_attempts(storage.publication(name), staged.outbox, shard, audit, report=log)
            for _ in range(2):
                send_shard(storage.publication(manifest.publication), manifest, shard, target(audit, None), attempts)
        assert (
            conclude_run(storage.publication(staged.publication), staged, target, log, now=datetime.now(UTC))
            is not None
        )

    assert verify(storage.publication(audit.name), audit, KafkaTopics(settings, audit, timeout_seconds=30)).is_equal
    (record,) = read_committed(settings, [topic])
    event = decode(record.headers, record.key, record.value)
    assert (event["type"], event["subject"]) == ("contexture.operations.run.started", cars.name)
    assert b'"triggered_by":"ana"' in (record.value or b"")
    assert record.key == cars.name.encode()
