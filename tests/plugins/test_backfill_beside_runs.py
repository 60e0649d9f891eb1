"""A backfill and normal runs send at the same time, and a replica holds what the source does in the end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.outboxes import NOON, Record, publication
from builders.states import Held, approved
from contexture.publications import Publication, fingerprint
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.orders import ReplayOptions, StageOrder
from contexture.storage.replay import replay
from contexture_airflow.run import RunRequest, StagedOutbox
from contexture_airflow.steps.conclude import conclude_run
from contexture_airflow.steps.publish import build_shard_attempts, send_shard
from contexture_airflow.steps.settle import finish_open_transaction

INTERVAL = (NOON, NOON + timedelta(minutes=5))
OLD: Record = ("cars", b"car1", b"old")
NEW: Record = ("cars", b"car1", b"new")
GONE: Record = ("cars", b"car1", None)
OTHER: Record = ("cars", b"car2", b"new")
FOLDER = PublicationPaths("vehicles")


class Beside:
    """Normal runs and one backfill, each of which has a ledger."""

    def __init__(self, home: Path, owner: Publication) -> None:
        self.storage, self.owner = Home(str(home)), owner
        self.live = FakeTarget(topics={"cars"})
        self.past = FakeTarget(topics={"cars", "again-cars"}, sent=self.live.sent)

    def prepared(self, sequence: int, row: Record, held: Held) -> Manifest:
        """An approved outbox of a normal run."""
        manifest = approved(self.storage, self.owner, sequence, [held], [[row]])
        state = self.storage.publication("vehicles").state.pointer()
        received = NOON if sequence == 1 else INTERVAL[1]
        manifest = manifest.model_copy(update={"state_generation": state.generation, "received_from": received})
        self.storage.write(FOLDER.manifest(manifest.outbox), manifest.to_json())
        return manifest

    def backfill(self, **options: Any) -> Manifest:
        """An approved outbox with what was archived."""
        order = StageOrder(
            publication=self.owner,
            fingerprint=fingerprint(self.owner),
            home=self.storage.root,
            run="past",
            mode="backfill",
            sequence=1,
            interval=INTERVAL,
            replay=ReplayOptions.model_validate(options),
        )
        self.storage.write(FOLDER.order("past"), order.to_json())
        manifest = replay(Home(order.home).publication(order.publication.name), order)
        self.storage.publication("vehicles").outboxes.set_status(manifest.outbox, "approved", reason="test")
        return manifest

    def send(self, manifest: Manifest) -> None:
        target = self.live if manifest.interval is None else self.past
        attempts = build_shard_attempts(self.storage.publication("vehicles"), manifest.outbox, 0, self.owner)
        send_shard(self.storage.publication(manifest.publication), manifest, 0, target, attempts)

    def conclude(self, manifest: Manifest) -> None:
        staged = StagedOutbox(
            publication="vehicles", run=manifest.run, outbox=manifest.outbox, sequence=1, records=1, shards=(0,)
        )
        target = self.live if manifest.interval is None else self.past
        assert (
            conclude_run(self.storage.publication(staged.publication), staged, target, lambda sentence: None, now=NOON)
            is not None
        )

    def finish(self, manifest: Manifest) -> None:
        self.send(manifest)
        self.conclude(manifest)

    def next_mode(self) -> str:
        return finish_open_transaction(
            self.storage.publication(self.owner.name),
            self.owner,
            RunRequest(run_id="next"),
            self.live,
            lambda sentence: None,
        ).mode


@pytest.fixture
def beside(tmp_path: Path) -> Beside:
    found = Beside(tmp_path, publication())
    found.finish(found.prepared(1, OLD, Held("car1", "old", sequence=1)))
    return found


@pytest.mark.parametrize(
    ("row", "held"), [(NEW, Held("car1", "new", sequence=2)), (GONE, Held("car1", sequence=2, removed=True))]
)
def test_an_earlier_value_that_may_lie_on_a_newer_one_is_corrected_by_a_full_run(
    beside: Beside, row: Record, held: Held
) -> None:
    backfill = beside.backfill()
    beside.finish(beside.prepared(2, row, held))
    beside.finish(backfill)
    assert beside.live.sent == [OLD, row, OLD]
    reason = beside.storage.publication("vehicles").state.pointer().full_run_due
    assert reason is not None
    assert reason.endswith("was sent in parallel with other runs, and may have replaced their values by earlier ones")
    assert beside.next_mode() == "full"


def test_so_is_one_that_came_upon_a_run_that_is_not_concluded_yet(beside: Beside) -> None:
    run = beside.prepared(2, NEW, Held("car1", "new", sequence=2))
    backfill = beside.backfill()
    beside.send(run)
    beside.finish(backfill)
    assert beside.next_mode() == "full"
    assert beside.live.sent == [OLD, NEW, OLD]


def test_runs_that_sent_other_identities_require_nothing(beside: Beside) -> None:
    backfill = beside.backfill()
    beside.finish(beside.prepared(2, OTHER, Held("car2", "new", sequence=2)))
    beside.finish(backfill)
    assert (beside.live.sent, beside.next_mode()) == ([OLD, OTHER, OLD], "changes")


def test_what_was_concluded_before_is_known_to_the_backfill_and_owes_nothing(beside: Beside) -> None:
    beside.finish(beside.prepared(2, NEW, Held("car1", "new", sequence=2)))
    beside.finish(beside.backfill())
    assert (beside.live.sent, beside.next_mode()) == ([OLD, NEW], "changes")


def test_a_run_whose_archive_is_gone_counts_as_one_that_sent_the_same(beside: Beside) -> None:
    backfill = beside.backfill()
    run = beside.prepared(2, OTHER, Held("car2", "new", sequence=2))
    beside.finish(run)
    beside.storage.remove(FOLDER.outbox(run.outbox))
    beside.finish(backfill)
    assert beside.next_mode() == "full"


@pytest.mark.parametrize("options", [{"outdated": "send"}, {"topic_prefix": "again-"}])
def test_who_asked_for_old_values_or_for_other_topics_is_owed_nothing(beside: Beside, options: dict[str, str]) -> None:
    backfill = beside.backfill(**options)
    beside.finish(beside.prepared(2, NEW, Held("car1", "new", sequence=2)))
    beside.finish(backfill)
    assert beside.next_mode() == "changes"


def test_a_topic_with_history_holds_both_and_nothing_is_owed(tmp_path: Path) -> None:
    beside = Beside(tmp_path, publication(topics={"keep": "history"}))
    beside.finish(beside.prepared(1, OLD, Held("car1", "old", sequence=1)))
    backfill = beside.backfill()
    beside.finish(beside.prepared(2, NEW, Held("car1", "new", sequence=2)))
    beside.finish(backfill)
    assert (beside.live.sent, beside.next_mode()) == ([OLD, NEW, OLD], "changes")
