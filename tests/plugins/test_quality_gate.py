"""Nothing passes the gate without a good verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from builders.structure_publications import structures
from contexture.errors import ConfigurationError, RejectedError
from contexture.sending.ledger_copies import LedgerCopies
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.quality_gate import apply_verdict
from contexture_airflow.steps.settle import finish_open_transaction

VEHICLES = publication()


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


class Gate:
    """One judgement, and what it said."""

    def __init__(self, storage: Home, *, superseded: bool = False) -> None:
        self.storage, self.kafka, self.log = storage, FakeTarget(is_superseded=superseded), list[str]()

    def apply_verdict(self, manifest: Manifest, *, dry_run: bool = False) -> list[int]:
        staged = StagedOutbox(
            publication="vehicles", run=manifest.run, outbox=manifest.outbox, sequence=1, records=1, shards=(0,)
        )
        return apply_verdict(
            self.storage.publication(staged.publication),
            staged,
            dry_run=dry_run,
            target_for=self.kafka,
            report=self.log.append,
        )

    def status(self, manifest: Manifest) -> str:
        return self.storage.publication("vehicles").outboxes.status(manifest.outbox).status


def test_an_approved_outbox_gives_the_shards_that_have_records(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1"), [], records("car2", topic="bikes")])
    assert gate.apply_verdict(manifest) == [0, 2]
    assert gate.status(manifest) == "approved"
    assert (gate.kafka.topics, gate.kafka.claims) == ({"cars", "bikes"}, ["outbox1"])


def test_a_ledger_with_too_few_replicas_is_reported_and_does_not_stop_the_run(storage: Home) -> None:
    gate = Gate(storage)
    gate.kafka.copies = LedgerCopies("contexture.ledger.vehicles", replicas=1, in_sync=1, brokers=3)
    assert gate.apply_verdict(outbox(storage, VEHICLES, 1, [records("car1")])) == [0]
    (warning,) = [line for line in gate.log if line.startswith("warning: the ledger")]
    assert "has 1 replica of 3 and min.insync.replicas 1 of 2" in warning
    assert "contexture.ledger.vehicles 3 replicas with kafka-reassign-partitions" in warning


def test_a_failed_critical_expectation_rejects_and_names_itself(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1")], failed={"volume": "critical", "types": "warning"})
    with pytest.raises(RejectedError, match=r"1 critical expectation failed.*volume holds, found 7 of 9"):
        gate.apply_verdict(manifest)
    assert gate.status(manifest) == "rejected"
    assert gate.kafka.claims == []


def test_an_empty_source_is_reported_as_a_possible_misspelling(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [[]], failed={"volume": "critical"})
    with pytest.raises(RejectedError, match=r"check that source\.service, service_path and types are spelt") as error:
        gate.apply_verdict(manifest)
    assert "quality.minimum_entities to 0" in error.value.next_step
    assert gate.kafka.sent == []


def test_a_source_that_has_nothing_yet_passes_and_is_reported_as_a_possible_misspelling(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [[]], failed={"volume": "warning"})
    assert gate.apply_verdict(manifest) == []
    assert gate.status(manifest) == "approved"
    (line,) = [line for line in gate.log if line.startswith("nothing is sent")]
    assert "check that source.service, service_path and types are spelt" in line


def test_an_empty_selection_of_a_registry_is_reported_as_one(storage: Home) -> None:
    manifest = outbox(storage, structures(name="vehicles"), 1, [[]], failed={"volume": "critical"})
    with pytest.raises(RejectedError, match=r"check that source\.select names agencies"):
        Gate(storage).apply_verdict(manifest)


def test_a_dry_run_of_a_baseline_says_what_it_would_note(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, structures(name="vehicles"), 1, [[]])
    noted = manifest.model_copy(update={"baseline": True, "source_count": 12})
    storage.write(PublicationPaths("vehicles").manifest(manifest.outbox), noted.to_json())
    assert gate.apply_verdict(manifest, dry_run=True) == []
    assert gate.log == ["dry run: 12 structures would be recorded, and nothing sent: it is the first run"]


def test_the_run_after_a_rejection_sends_none_of_it(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1")], failed={"volume": "critical"})
    with pytest.raises(RejectedError):
        gate.apply_verdict(manifest)
    finish_open_transaction(
        storage.publication(VEHICLES.name), VEHICLES, RunRequest(run_id="next"), gate.kafka, gate.log.append
    )
    assert gate.kafka.sent == []
    assert gate.status(manifest) == "rejected"


def test_a_failed_warning_passes_and_is_reported(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1")], failed={"freshness": "warning"})
    assert gate.apply_verdict(manifest) == [0]
    assert "warning: freshness holds (7 of 9)" in gate.log


def test_topics_of_several_identities_are_reported(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1")]).model_copy(update={"collisions": 2})
    storage.write(PublicationPaths("vehicles").manifest(manifest.outbox), manifest.to_json())

    gate.apply_verdict(manifest)

    assert "2 events have a topic that another identity uses: the report shows which" in gate.log


def test_a_dry_run_previews_topics_and_counts_and_sends_nothing(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1", "car2")])
    assert gate.apply_verdict(manifest, dry_run=True) == []
    assert gate.status(manifest) == "rejected"
    assert gate.log == ["dry run: 2 records would go to 1 topics", "  cars: 2"]
    assert gate.kafka.topics == set()


def test_judging_again_after_a_crash_goes_on(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1")])
    assert gate.apply_verdict(manifest) == gate.apply_verdict(manifest) == [0]


def test_an_outbox_at_its_end_is_not_judged_again(storage: Home) -> None:
    gate = Gate(storage)
    manifest = outbox(storage, VEHICLES, 1, [records("car1")])
    gate.apply_verdict(manifest, dry_run=True)
    with pytest.raises(ConfigurationError, match="rejected already"):
        gate.apply_verdict(manifest)


def test_an_outbox_that_another_instance_overtook_is_abandoned(storage: Home) -> None:
    gate = Gate(storage, superseded=True)
    manifest = outbox(storage, VEHICLES, 1, [records("car1")])
    with pytest.raises(ConfigurationError, match="is too late"):
        gate.apply_verdict(manifest)
    assert gate.status(manifest) == "abandoned"


def replayed(storage: Home, **changes: object) -> Manifest:
    """The outbox of a backfill."""
    manifest = outbox(storage, VEHICLES, 1, [records("car1")], mode="backfill", interval=(NOON, NOON))
    manifest = manifest.model_copy(update=changes)
    storage.write(PublicationPaths("vehicles").manifest(manifest.outbox), manifest.to_json())
    return manifest


def test_a_dry_run_of_a_backfill_reports_what_is_missing_left_out_and_where_it_goes(storage: Home) -> None:
    gate = Gate(storage)
    lacking = tuple(f"run {number}" for number in range(1, 23))
    manifest = replayed(
        storage, replayed_from="archive", missing=lacking, topic_prefix="again-", skipped_newer=7, sends_outdated=True
    )
    assert gate.apply_verdict(manifest, dry_run=True) == []
    assert gate.log == [
        "sent again from the archive: what was sent at that time",
        "to topics that begin with again-",
        *(f"missing, and not replaced: {each}" for each in lacking[:20]),
        "and 2 more are missing",
        "7 records are left out, because the target holds something newer",
        "dry run: 1 records would go to 1 topics",
        "  cars: 1",
    ]
    assert gate.status(manifest) == "rejected"


def test_old_values_over_newer_ones_are_warned_of(storage: Home) -> None:
    gate = Gate(storage)
    gate.apply_verdict(replayed(storage, replayed_from="source", sends_outdated=True))
    assert gate.log[:2] == [
        "sent again from what the source stores of that time",
        "on compacted topics, old values replace newer ones, because replay_outdated is send",
    ]


def concluded(storage: Home, shards: int, name: str = "before") -> None:
    """The outbox of an earlier run, with so many shards, at its end."""
    manifest = outbox(storage, VEHICLES, 1, [records("car1"), *[[] for _ in range(shards - 1)]], name=name)
    outboxes = storage.publication("vehicles").outboxes
    for step in ("approved", "concluded"):
        outboxes.set_status(manifest.outbox, step, reason="a test says so")
    pointer = storage.publication("vehicles").state.pointer()
    state = pointer.model_copy(update={"outbox": manifest.outbox})
    storage.write(PublicationPaths("vehicles").current_state(), state.to_json())


@pytest.mark.parametrize(("shards_before", "fences_all"), [(2, False), (1, True), (3, True)])
def test_all_shards_are_fenced_when_their_number_changed(storage: Home, shards_before: int, fences_all: bool) -> None:
    concluded(storage, shards_before)
    gate = Gate(storage)
    gate.apply_verdict(outbox(storage, VEHICLES, 2, [records("car1"), records("car2")]))
    assert gate.kafka.fenced_all is fences_all
    assert gate.kafka.cleared == ({"cars"} if fences_all else set())
    assert any("senders of all shards are fenced" in line for line in gate.log) is fences_all


def test_all_shards_are_fenced_from_an_abandonment_to_the_next_concluded_outbox(storage: Home) -> None:
    concluded(storage, 2)
    outboxes = storage.publication("vehicles").outboxes
    given_up = outbox(storage, VEHICLES, 2, [records("car1"), []], name="given-up")
    outboxes.set_status(given_up.outbox, "approved", reason="a test says so")
    outboxes.set_status(given_up.outbox, "abandoned", reason="an operator says so")

    gate, fenced = Gate(storage), []
    for sequence, end in ((3, "rejected"), (4, "concluded"), (5, "concluded")):
        manifest = outbox(storage, VEHICLES, sequence, [records("car1"), []], name=f"next{sequence}")
        if end == "rejected":
            outboxes.set_status(manifest.outbox, "rejected", reason="a test says so")
            continue
        gate.apply_verdict(manifest)
        fenced.append(gate.kafka.fenced_all)
        outboxes.set_status(manifest.outbox, "concluded", reason="a test says so")

    assert fenced == [True, False]


def test_a_message_of_a_whole_transaction_is_measured_before_it_is_approved(storage: Home) -> None:
    gate = Gate(storage)
    topics = {"topics": ["structures"], "keep": "history"}
    owner = structures(name="vehicles", topics=topics, message={"bundle": "transaction"})
    manifest = outbox(storage, owner, 1, [[("structures", b"k", b"x" * 200)]])
    gate.kafka.client_bytes = 300

    with pytest.raises(ConfigurationError, match="a record for topic structures has 200 bytes"):
        gate.apply_verdict(manifest)

    assert (gate.status(manifest), gate.kafka.claims) == ("prepared", [])
    gate.kafka.client_bytes = 1000
    assert gate.apply_verdict(manifest) == [0]


def test_single_structures_are_not_measured_again(storage: Home) -> None:
    gate = Gate(storage)
    gate.apply_verdict(outbox(storage, structures(name="vehicles"), 1, [[("structures", b"k", b"x")]]))
    assert gate.kafka.checked_sizes == []
