"""State after records went to the dead-letter topic: it says what the target holds, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, publication, records, say_whom
from builders.states import Held, approved
from contexture.errors import DefectError
from contexture.storage.conclusion import conclude
from contexture.storage.delivery import DeadLetterIndex, without_dead_letters
from contexture.storage.home import Home
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.state_updates import UNKNOWN_CONTENT
from fakes.failing_storage import FailingStorage, KilledError

VEHICLES = publication()
FOLDER = PublicationPaths("vehicles")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def outbox_of(storage, sequence, delta, *shards, identities=None):
    """An outbox whose records name their identities: by their keys, or as passed."""
    manifest = approved(storage, VEHICLES, sequence, delta, shards)
    say_whom(storage, manifest, *([identities] if identities else []))
    return manifest


def concluded(storage, manifest, **refused):
    shards = {int(name.removeprefix("shard")): tuple(positions) for name, positions in refused.items()}
    return conclude(
        storage.publication(manifest.publication),
        manifest,
        cluster="c",
        target="t",
        dead_letters=DeadLetterIndex(shards=shards),
    )


def rows_of(storage):
    state = storage.publication("vehicles").state
    return {row["identity"].decode(): row for row in state.table(state.pointer()).to_pylist()}


def shown(storage):
    """Content and mark of each identity that state holds."""
    return {
        name: ("?" if row["content_hash"] == UNKNOWN_CONTENT else row["content_hash"].decode().strip(), row["withheld"])
        for name, row in rows_of(storage).items()
    }


def test_what_was_never_held_and_never_sent_is_not_held(storage):
    manifest = outbox_of(storage, 1, [Held("car1"), Held("car2")], records("car1", "car2"))
    pointer = concluded(storage, manifest, shard0=[1])
    assert shown(storage) == {"car1": ("a", False)}
    assert pointer.identities == 1


def test_what_was_held_stays_as_it_is_and_is_marked(storage):
    concluded(storage, outbox_of(storage, 1, [Held("car1"), Held("car2")], records("car1", "car2")))
    pointer = concluded(storage, outbox_of(storage, 2, [Held("car2", "b", 2)], records("car2")), shard0=[0])
    assert shown(storage) == {"car1": ("a", False), "car2": ("a", True)}
    assert rows_of(storage)["car2"]["sequence"] == 1
    assert pointer.identities == 2


def test_a_refused_tombstone_leaves_what_it_would_have_deleted(storage):
    concluded(storage, outbox_of(storage, 1, [Held("car1", missing_since=NOON)], records("car1")))
    gone = [Held("car1", removed=True)]
    concluded(storage, outbox_of(storage, 2, gone, [("cars", b"car1", None)]), shard0=[0])
    assert shown(storage) == {"car1": ("a", True)}
    assert rows_of(storage)["car1"]["missing_since"] == NOON


def test_what_was_read_again_is_no_longer_missing_though_it_was_refused(storage):
    concluded(storage, outbox_of(storage, 1, [Held("car1", missing_since=NOON)], records("car1")))
    concluded(storage, outbox_of(storage, 2, [Held("car1", "b")], records("car1")), shard0=[0])
    assert rows_of(storage)["car1"]["missing_since"] is None


def test_a_later_change_that_was_sent_makes_up_for_an_earlier_one(storage):
    manifest = outbox_of(storage, 1, [Held("car1", "b")], records("car1", "car1"))
    concluded(storage, manifest, shard0=[0])
    assert shown(storage) == {"car1": ("b", False)}


def test_where_an_earlier_change_was_sent_the_content_is_unknown(storage):
    concluded(storage, outbox_of(storage, 1, [Held("car1")], records("car1")))
    concluded(storage, outbox_of(storage, 2, [Held("car1", "c")], records("car1", "car1")), shard0=[1])
    # Neither "a", which state held, nor "c", which was refused: whatever is read next differs, and is sent.
    assert shown(storage) == {"car1": ("?", True)}


def test_what_was_made_and_not_deleted_is_still_to_be_deleted(storage):
    sent = [("cars", b"car1", b"{}"), ("cars", b"car1", None)]
    concluded(storage, outbox_of(storage, 1, [Held("car1", removed=True)], sent), shard0=[1])
    assert shown(storage) == {"car1": ("?", True)}


def test_a_refusal_in_one_of_several_topics_is_one_of_the_identity(storage):
    sent = [*records("car1", topic="cars"), *records("car1", topic="more")]
    concluded(storage, outbox_of(storage, 1, [Held("car1")], sent), shard0=[1])
    assert shown(storage) == {"car1": ("?", True)}


def test_the_topics_of_an_identity_may_be_in_several_shards(storage):
    first, second = records("car1", topic="cars"), records("car1", topic="more")
    concluded(storage, outbox_of(storage, 1, [Held("car1")], first, second), shard1=[0])
    assert shown(storage) == {"car1": ("?", True)}


def test_all_identities_of_a_record_of_lines_are_withheld(storage):
    delta = [Held("car1"), Held("car2"), Held("car3")]
    lines = [("cars", b"", b"1\n2"), ("cars", b"", b"3")]
    manifest = outbox_of(storage, 1, delta, lines, identities=[["car1", "car2"], ["car3"]])
    concluded(storage, manifest, shard0=[0])
    assert shown(storage) == {"car3": ("a", False)}


def test_the_next_run_that_sends_it_ends_the_withholding(storage):
    concluded(storage, outbox_of(storage, 1, [Held("car1")], records("car1")))
    concluded(storage, outbox_of(storage, 2, [Held("car1", "b")], records("car1")), shard0=[0])
    concluded(storage, outbox_of(storage, 3, [Held("car1", "b", 3)], records("car1")))
    assert shown(storage) == {"car1": ("b", False)}


def test_an_outbox_that_does_not_name_its_identities_is_not_concluded(storage):
    manifest = approved(storage, VEHICLES, 1, [Held("car1")], [records("car1")])
    with pytest.raises(DefectError, match="does not name its records' identities"):
        concluded(storage, manifest, shard0=[0])
    assert storage.publication("vehicles").state.pointer().sequence == 0


def test_what_was_refused_is_stored_and_read_again(storage):
    manifest = outbox_of(storage, 1, [Held("car1"), Held("car2")], records("car1", "car2"))
    concluded(storage, manifest, shard0=[1])
    assert storage.publication(manifest.publication).outbox(manifest.outbox).dead_letters().shards == {0: (1,)}
    last = storage.publication("vehicles").outboxes.status("outbox1").steps[-1]
    assert last.reason == "2 records committed, 1 of them to the dead-letter topic"


def test_an_outbox_without_refusals_keeps_nothing(storage):
    manifest = outbox_of(storage, 1, [Held("car1")], records("car1"))
    concluded(storage, manifest)
    assert storage.publication(manifest.publication).outbox(manifest.outbox).dead_letters().count == 0
    assert not storage.exists(FOLDER.dead_letters("outbox1"))


def test_readers_of_the_archive_can_leave_them_out(storage):
    manifest = outbox_of(storage, 1, [Held("car1")], records("car1", "car2", "car3"))
    batches = OutboxShardReader(storage, manifest, 0, rows_per_batch=2).batches(0)
    left = [key for batch in without_dead_letters(batches, (0, 1)) for key in batch.column("key").to_pylist()]
    assert left == [b"car3"]


@pytest.mark.parametrize("died", range(1, 14))
def test_concluding_that_was_cut_short_is_ended_by_doing_it_again(storage, died):
    concluded(storage, outbox_of(storage, 1, [Held("car1"), Held("car2")], records("car1", "car2")))
    manifest = outbox_of(storage, 2, [Held("car1", "b", 2), Held("car3", "b", 2)], records("car1", "car3"))
    refused = DeadLetterIndex(shards={0: (0, 1)})
    try:
        conclude(
            FailingStorage(storage.root, died).publication(manifest.publication),
            manifest,
            cluster="c",
            target="t",
            dead_letters=refused,
        )
    except KilledError:
        conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t", dead_letters=refused)
    assert shown(storage) == {"car1": ("a", True), "car2": ("a", False)}
    assert storage.publication("vehicles").state.pointer().sequence == 2
