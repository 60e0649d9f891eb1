"""A run is concluded when the ledger shows every record, and not before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builders import states
from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.notifying import notify
from builders.outboxes import NOON, outbox, publication, records, say_whom
from builders.states import Held, held
from contexture.errors import ConfigurationError, RetriableError
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.settle import finish_open_transaction
from fakes.full_disk import FullDisk

VEHICLES = publication()


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def conclude(storage: Home, manifest: Manifest, kafka: FakeTarget) -> dict[str, object] | None:
    staged = StagedOutbox(
        publication="vehicles", run=manifest.run, outbox=manifest.outbox, sequence=1, records=1, shards=(0,)
    )
    counts = conclude_run(storage.publication(staged.publication), staged, kafka, lambda sentence: None, now=NOON)
    return None if counts is None else dict(counts)


def approved(storage: Home, sequence: int, *shards: str) -> Manifest:
    manifest = outbox(storage, VEHICLES, sequence, [records(*names.split()) for names in shards])
    storage.publication("vehicles").outboxes.set_status(manifest.outbox, "approved", reason="test")
    return manifest


def test_state_moves_on_when_everything_is_sent(storage: Home) -> None:
    manifest, kafka = approved(storage, 1, "car1 car2", ""), FakeTarget()
    kafka.stand(0, "outbox1", 1, 2)
    counts = conclude(storage, manifest, kafka)
    assert counts is not None
    assert (counts["records"], counts["sequence"], counts["mode"]) == (2, 1, "changes")
    pointer = storage.publication("vehicles").state.pointer()
    assert (pointer.sequence, pointer.cluster, pointer.target) == (1, "cluster-a", "PLAINTEXT://broker:9092")
    assert pointer.watermark == "2026-03-01T12:00:00.000Z"


def test_what_the_ledger_says_went_to_the_dead_letters_is_not_held(storage: Home) -> None:
    cars = [Held("car1"), Held("car2"), Held("car3")]
    manifest = states.approved(storage, VEHICLES, 1, cars, [records("car1", "car2"), records("car3")])
    say_whom(storage, manifest)
    kafka = FakeTarget(refused={0: (1,)})
    kafka.stand(0, "outbox1", 1, 2)
    kafka.stand(1, "outbox1", 1, 1)
    counts = conclude(storage, manifest, kafka)
    assert counts is not None
    assert (counts["records"], counts["dead_letters"]) == (3, 1)
    assert set(held(storage, "vehicles")) == {"car1", "car3"}
    again = conclude(storage, manifest, kafka)
    assert again == counts


def test_nothing_to_send_is_concluded_too(storage: Home) -> None:
    manifest = approved(storage, 1, "", "")
    counts = conclude(storage, manifest, FakeTarget())
    assert counts is not None
    assert counts["records"] == 0
    assert storage.publication("vehicles").state.pointer().sequence == 1


def test_a_cluster_that_got_nothing_is_not_taken_for_the_one_that_holds_everything(storage: Home) -> None:
    manifest = outbox(storage, VEHICLES, 1, [[]], cluster="cluster-a")
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="test")
    with pytest.raises(ConfigurationError, match="made for another Kafka cluster"):
        conclude(storage, manifest, FakeTarget(cluster_id="cluster-b"))
    assert storage.publication("vehicles").state.pointer().cluster is None
    assert conclude(storage, manifest, FakeTarget()) is not None


@pytest.mark.parametrize(
    ("policy", "mode", "following"),
    [("full", "changes", "full"), ("full", "full", "changes"), ("none", "changes", "changes")],
)
def test_a_run_that_was_asked_for_changes_leaves_the_full_run_that_a_changed_file_owes(
    storage: Home, policy: str, mode: str, following: str
) -> None:
    """What did not change is not under its new name yet."""
    kafka = FakeTarget(topics={"cars"})
    conclude(storage, approved(storage, 1, ""), kafka)
    renamed = publication(topics={"naming": "injective"}, resync={"on_config_change": policy})
    manifest = outbox(storage, renamed, 2, [[]], mode=mode)
    storage.publication("vehicles").outboxes.set_status("outbox2", "approved", reason="test")
    conclude(storage, manifest, kafka)
    plan = finish_open_transaction(
        storage.publication(renamed.name), renamed, RunRequest(run_id="scheduled"), kafka, lambda sentence: None
    )
    assert plan.mode == following


@pytest.mark.parametrize("position", [None, 0, 1])
def test_a_publish_task_that_was_only_marked_as_success_is_found_out(storage: Home, position: int | None) -> None:
    manifest, kafka = approved(storage, 1, "car1 car2"), FakeTarget()
    if position is not None:
        kafka.stand(0, "outbox1", 1, position)
    with pytest.raises(ConfigurationError, match=rf"{position or 0} of 2 records of shard 0 are in Kafka"):
        conclude(storage, manifest, kafka)
    assert storage.publication("vehicles").state.pointer().sequence == 0


def test_a_full_disk_leaves_what_was_sent_to_be_concluded_when_there_is_room(storage: Home) -> None:
    manifest, kafka = approved(storage, 1, "car1"), FakeTarget()
    kafka.stand(0, "outbox1", 1, 1)
    with_room, storage.filesystem = storage.filesystem, FullDisk(storage.filesystem)
    with pytest.raises(RetriableError, match=r"No space left on device\. Next: make room or repair"):
        conclude(storage, manifest, kafka)
    storage.filesystem = with_room
    assert storage.publication("vehicles").outboxes.status("outbox1").status == "approved"
    assert storage.publication("vehicles").state.pointer().sequence == 0
    assert conclude(storage, manifest, kafka) is not None
    assert storage.publication("vehicles").state.pointer().generation == 1


def test_a_superseded_outbox_is_abandoned_and_state_stays(storage: Home) -> None:
    manifest, kafka = approved(storage, 1, "car1"), FakeTarget()
    kafka.stand(0, "a later one", 2, 1)
    assert conclude(storage, manifest, kafka) is None
    assert storage.publication("vehicles").outboxes.status("outbox1").status == "abandoned"
    assert storage.publication("vehicles").state.pointer().sequence == 0


def test_concluding_twice_is_harmless(storage: Home) -> None:
    manifest, kafka = approved(storage, 1, "car1"), FakeTarget()
    kafka.stand(0, "outbox1", 1, 1)
    first = conclude(storage, manifest, kafka)
    kafka.stand(0, "a later one", 2, 1)
    assert conclude(storage, manifest, kafka) == first
    assert storage.publication("vehicles").state.pointer().generation == 1


def test_a_dry_run_concludes_nothing(storage: Home) -> None:
    manifest = outbox(storage, VEHICLES, 1, [records("car1")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "rejected", reason="dry run")
    assert conclude(storage, manifest, FakeTarget()) is None


def claimed(storage: Home, manifest: Manifest) -> None:
    """Makes the outbox one of everything that waits in the inbox."""
    storage.publication("vehicles").landing(manifest.run).write_claim(storage.publication("vehicles").inbox.claim())
    storage.publication("vehicles").transfer_claim(manifest.run, manifest.outbox)


def waiting(storage: Home) -> int:
    return len(storage.publication("vehicles").inbox.claim().files)


def test_notifications_leave_the_inbox_when_they_are_in_kafka(storage: Home) -> None:
    notify(storage, b"one", b"two")
    manifest, kafka = approved(storage, 1, "car1"), FakeTarget()
    claimed(storage, manifest)
    notify(storage, b"three")
    with pytest.raises(ConfigurationError, match="0 of 1 records"):
        conclude(storage, manifest, kafka)
    assert waiting(storage) == 3
    kafka.stand(0, "outbox1", 1, 1)
    conclude(storage, manifest, kafka)
    assert waiting(storage) == 1


def test_notifications_of_a_superseded_outbox_are_there_for_the_next_run(storage: Home) -> None:
    notify(storage, b"one")
    manifest, kafka = approved(storage, 1, "car1"), FakeTarget()
    claimed(storage, manifest)
    kafka.stand(0, "a later one", 2, 1)
    assert conclude(storage, manifest, kafka) is None
    assert waiting(storage) == 1


def test_what_retention_says_is_done_once_a_day(storage: Home) -> None:
    kafka, state, old = (
        FakeTarget(),
        storage.publication("vehicles").state,
        PublicationPaths("vehicles").outbox("outbox1"),
    )
    later = datetime.now(UTC) + timedelta(days=31)

    def run(sequence: int, now: datetime) -> None:
        manifest = approved(storage, sequence, "car")
        kafka.stand(0, manifest.outbox, sequence, 1)
        staged = StagedOutbox(
            publication="vehicles", run=manifest.run, outbox=manifest.outbox, sequence=sequence, records=1, shards=(0,)
        )
        conclude_run(storage.publication(staged.publication), staged, kafka, lambda sentence: None, now=now)

    run(1, datetime.now(UTC))
    state.commit(state.pointer().model_copy(update={"concluded_at": later}))
    run(2, later)
    assert storage.exists(old), "a run of that day has done it"
    run(3, later)
    assert not storage.exists(old)


def test_runs_older_than_the_archive_are_removed(storage: Home) -> None:
    old, kafka = approved(storage, 1, "car1"), FakeTarget()
    kafka.stand(0, "outbox1", 1, 1)
    conclude(storage, old, kafka)
    new = approved(storage, 2, "car2")
    kafka.stand(0, "outbox2", 2, 1)
    staged = StagedOutbox(publication="vehicles", run=new.run, outbox=new.outbox, sequence=2, records=1, shards=(0,))
    a_month_later = storage.publication("vehicles").outboxes.status("outbox1").steps[-1].at + timedelta(days=31)
    conclude_run(storage.publication(staged.publication), staged, kafka, lambda sentence: None, now=a_month_later)
    assert not storage.exists(PublicationPaths("vehicles").outbox("outbox1"))
