"""The tasks of a registry publication: instances that share nothing but Kafka, and the first run that sends nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.outboxes import NOON
from builders.registry_outboxes import RegistryChange, registry_outbox, structures
from builders.states import Held, held, state_table
from contexture.errors import ConfigurationError, RejectedError, RetriableError
from contexture.kafka import ClientSettings
from contexture.sending.target import KafkaTarget
from contexture.storage.home import Home
from contexture.storage.manifests import ExpectationResult, Manifest, QualityVerdict
from contexture.storage.orders import StageOrder
from contexture_airflow.run import RunPlan, RunRequest, StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction

CODELISTS = structures()
LOG = (
    RegistryChange(11, ("FREQ", "AREA")),
    RegistryChange(12, ("UNIT",)),
    RegistryChange(12, ("AREA",), deletions=True),
)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def approved(storage: Home, **options: bool) -> Manifest:
    manifest = registry_outbox(storage, CODELISTS, 3, LOG, **options)
    storage.publication("codelists").outboxes.set_status(manifest.outbox, "approved", reason="good")
    return manifest


def staged(manifest: Manifest) -> StagedOutbox:
    return StagedOutbox(
        publication="codelists",
        run=manifest.run,
        outbox=manifest.outbox,
        sequence=manifest.sequence,
        records=manifest.records,
        shards=(0,),
    )


def conclude(storage: Home, manifest: Manifest, kafka: FakeTarget) -> dict[str, object] | None:
    found = conclude_run(
        storage.publication(manifest.publication),
        staged(manifest),
        kafka,
        lambda sentence: None,
        now=NOON + timedelta(days=1),
    )
    return None if found is None else dict(found)


def status(storage: Home, manifest: Manifest) -> str:
    return storage.publication("codelists").outboxes.status(manifest.outbox).status


def run_settle(storage: Home, kafka: FakeTarget) -> RunPlan:
    return finish_open_transaction(
        storage.publication(CODELISTS.name), CODELISTS, RunRequest(run_id="next"), kafka, lambda sentence: None
    )


def test_an_outbox_is_concluded_when_it_is_in_kafka(storage: Home) -> None:
    manifest, kafka = approved(storage), FakeTarget()
    kafka.stand(0, manifest.outbox, 3, 4, 12, deletions=True)
    counts = conclude(storage, manifest, kafka)
    assert counts is not None
    assert (counts["registry_transaction"], counts["flush"], counts["baseline"]) == (12, False, False)
    assert storage.publication("codelists").state.pointer().watermark == "12"


@pytest.mark.parametrize(("source", "deletions"), [(12, True), (13, False)])
def test_an_outbox_that_another_instance_sent_is_concluded(storage: Home, source: int, deletions: bool) -> None:
    manifest, kafka = approved(storage), FakeTarget()
    kafka.stand(0, "of another instance", 99, 7, source, deletions=deletions)
    assert conclude(storage, manifest, kafka) is not None
    assert status(storage, manifest) == "concluded"


@pytest.mark.parametrize(("source", "deletions", "found"), [(10, True, 0), (11, True, 2), (12, False, 3)])
def test_an_outbox_that_was_sent_in_part_is_not_concluded(
    storage: Home, source: int, deletions: bool, found: int
) -> None:
    manifest, kafka = approved(storage), FakeTarget()
    kafka.stand(0, "of another instance", 99, 7, source, deletions=deletions)
    with pytest.raises(ConfigurationError, match=f"{found} of 4 records of shard 0 are in Kafka"):
        conclude(storage, manifest, kafka)
    assert status(storage, manifest) == "approved"


def test_a_flush_of_less_than_what_was_sent_is_abandoned(storage: Home) -> None:
    flush = registry_outbox(storage, CODELISTS, 3, [RegistryChange(12, ("FREQ",))], flush=True)
    storage.publication("codelists").outboxes.set_status(flush.outbox, "approved", reason="good")
    kafka = FakeTarget()
    kafka.stand(0, "of another instance", 1, 7, 13)
    assert conclude(storage, flush, kafka) is None
    assert status(storage, flush) == "abandoned"
    assert storage.publication("codelists").state.pointer().sequence == 0


def test_a_flush_is_not_concluded_by_what_others_sent(storage: Home) -> None:
    flush = registry_outbox(storage, CODELISTS, 3, [RegistryChange(12, ("FREQ",))], flush=True)
    storage.publication("codelists").outboxes.set_status(flush.outbox, "approved", reason="good")
    kafka = FakeTarget()
    kafka.stand(0, "of another instance", 1, 7, 12, deletions=True)
    with pytest.raises(ConfigurationError, match="0 of 1 records"):
        conclude(storage, flush, kafka)


def test_settle_sends_what_others_have_not_sent(storage: Home) -> None:
    manifest, kafka = approved(storage), FakeTarget()
    kafka.stand(0, "of another instance", 99, 7, 11)
    plan = run_settle(storage, kafka)
    assert [value for _, _, value in kafka.sent] == [b"12", None]
    assert (plan.settled, plan.sequence, status(storage, manifest)) == ((manifest.outbox,), 4, "concluded")


def test_settle_concludes_without_sending_what_others_sent(storage: Home) -> None:
    manifest, kafka = approved(storage), FakeTarget()
    kafka.stand(0, "of another instance", 99, 7, 12, deletions=True)
    run_settle(storage, kafka)
    assert (kafka.sent, status(storage, manifest)) == ([], "concluded")


def test_a_baseline_becomes_state_and_sends_nothing(storage: Home) -> None:
    manifest = registry_outbox(storage, CODELISTS, 1, [], baseline=True).model_copy(update={"watermark": "40"})
    folder = PublicationPaths("codelists")
    storage.write(folder.manifest(manifest.outbox), manifest.to_json())
    with storage.write_atomically(f"{folder.state_delta(manifest.outbox)}/shard-00000.parquet") as path:
        pq.write_table(state_table([Held("FREQ"), Held("AREA")]), path, filesystem=storage.filesystem)
    kafka, log = FakeTarget(), list[str]()
    assert (
        apply_verdict(
            storage.publication(manifest.publication),
            staged(manifest),
            dry_run=False,
            target_for=kafka,
            report=log.append,
        )
        == []
    )
    assert conclude(storage, manifest, kafka) is not None
    pointer = storage.publication("codelists").state.pointer()
    assert (pointer.outbox, pointer.watermark, pointer.full_run_due) == (manifest.outbox, "40", None)
    assert held(storage, "codelists") == {"FREQ": "a", "AREA": "a"}
    assert (kafka.sent, kafka.topics) == ([], set())
    assert kafka.ledger[0].source_place == (40, True)
    assert any("baseline" in sentence for sentence in log)


def baseline(storage: Home, watermark: str | None) -> Manifest:
    manifest = registry_outbox(storage, CODELISTS, 1, [], baseline=True).model_copy(update={"watermark": watermark})
    storage.write(PublicationPaths("codelists").manifest(manifest.outbox), manifest.to_json())
    return manifest


def gate(storage: Home, manifest: Manifest, kafka: FakeTarget) -> list[int]:
    return apply_verdict(
        storage.publication(manifest.publication),
        staged(manifest),
        dry_run=False,
        target_for=kafka,
        report=lambda sentence: None,
    )


def test_a_second_instance_begins_where_the_first_is(storage: Home) -> None:
    kafka, manifest = FakeTarget(), baseline(storage, "40")
    kafka.stand(0, "of another instance", 7, 3, 40)
    assert gate(storage, manifest, kafka) == []
    assert (status(storage, manifest), kafka.ledger[0].outbox) == ("approved", "of another instance")


def test_an_instance_that_would_leave_a_gap_waits_for_the_one_that_lags(storage: Home) -> None:
    kafka, manifest = FakeTarget(), baseline(storage, "40")
    kafka.stand(0, "of another instance", 7, 3, 38)
    with pytest.raises(RetriableError, match="up to transaction 38, and the registry is at 40") as waits:
        gate(storage, manifest, kafka)
    assert "mode full" in waits.value.next_step
    assert status(storage, manifest) == "prepared"
    kafka.stand(0, "of another instance", 8, 3, 40)
    assert gate(storage, manifest, kafka) == []


def test_an_instance_that_saw_nothing_in_the_gap_need_not_wait(storage: Home) -> None:
    kafka, manifest = FakeTarget(), baseline(storage, "40")
    path = PublicationPaths("codelists").order(manifest.run)
    order = StageOrder.model_validate_json(storage.read(path))
    storage.write(path, order.model_copy(update={"log_sent_to": 38}).to_json())
    kafka.stand(0, "of another instance", 7, 3, 38)
    assert gate(storage, manifest, kafka) == []


@pytest.mark.parametrize("watermark", [None, "Sun, 01 Mar 2026 12:00:00 GMT"])
def test_a_registry_without_numbers_begins_no_log(storage: Home, watermark: str | None) -> None:
    kafka = FakeTarget()
    assert gate(storage, baseline(storage, watermark), kafka) == []
    assert kafka.ledger == {}


def test_a_full_run_that_is_owed_stays_owed_after_a_baseline(storage: Home) -> None:
    state = storage.publication("codelists").state
    state.commit(state.pointer().model_copy(update={"full_run_due": "a person said so"}))
    manifest = registry_outbox(storage, CODELISTS, 1, [], baseline=True)
    storage.publication("codelists").outboxes.set_status(manifest.outbox, "approved", reason="good")
    conclude(storage, manifest, FakeTarget())
    assert state.pointer().full_run_due == "a person said so"


def test_a_run_without_records_fences_no_other_instance(storage: Home) -> None:
    """Nothing listens at the address: claiming would not come back."""
    nowhere = ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:1"})
    manifest = registry_outbox(storage, CODELISTS, 1, [])
    assert KafkaTarget(nowhere, CODELISTS).claim(manifest)


def test_an_empty_registry_is_reported_as_a_selection_to_look_at(storage: Home) -> None:
    manifest = registry_outbox(storage, CODELISTS, 1, [])
    failed = ExpectationResult(
        name="volume", severity="critical", success=False, on="structures", description="volume holds", observed="0"
    )
    verdict = QualityVerdict(outbox=manifest.outbox, approved=False, results=(failed,))
    storage.write(PublicationPaths("codelists").verdict(manifest.outbox), verdict.to_json())
    with pytest.raises(RejectedError) as refused:
        gate(storage, manifest, FakeTarget())
    assert "source.select" in refused.value.next_step
