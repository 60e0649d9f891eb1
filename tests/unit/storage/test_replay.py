"""Sending an interval again from the archive."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, Record, publication, records
from builders.registry_outboxes import RegistryChange, registry_outbox, structures
from builders.states import Held, approved
from contexture.errors import ConfigurationError
from contexture.publications import Publication
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.orders import ReplayOptions, StageOrder
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.replay import PartlyArchivedError, replay

LATEST = publication()
HISTORY = publication(topics={"keep": "history"}, publish={"transaction_records": 2})
DAY = timedelta(days=1)
FOLDER = PublicationPaths("vehicles")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def archive(
    storage: Home,
    owner: Publication,
    sequence: int,
    shards: list[list[Record]],
    delta: list[Held] | None = None,
    *,
    received: datetime = NOON,
) -> Manifest:
    """A concluded outbox, received when it is said."""
    manifest = approved(storage, owner, sequence, delta or [], shards)
    manifest = manifest.model_copy(update={"received_from": received, "received_to": received})
    storage.write(FOLDER.manifest(manifest.outbox), manifest.to_json())
    conclude(storage.publication(manifest.publication), manifest, cluster=None, target=None)
    return manifest


def order(
    storage: Home,
    owner: Publication,
    interval: tuple[datetime, datetime] | None = (NOON, NOON + DAY),
    **options: Any,
) -> Any:
    return StageOrder(
        publication=owner,
        fingerprint="f",
        home=storage.root,
        run="backfill",
        mode="backfill",
        sequence=9,
        interval=interval,
        replay=ReplayOptions.model_validate(options),
    )


def sent(storage: Home, manifest: Manifest) -> list[list[tuple[int, int, str, bytes | None]]]:
    """Position, transaction, key and value of the records of each shard."""
    readers = [OutboxShardReader(storage, manifest, shard.shard) for shard in manifest.shards]
    rows = [[row for batch in reader.batches(0) for row in batch.to_pylist()] for reader in readers]
    return [
        [(row["position"], row["transaction"], row["key"].decode(), row["value"]) for row in shard] for shard in rows
    ]


def test_what_was_received_in_the_interval_is_archived_its_end_excluded(storage: Home):
    for sequence, received in enumerate((NOON - timedelta(seconds=1), NOON, NOON + DAY / 2, NOON + DAY), 1):
        archive(storage, LATEST, sequence, [records("car1")], received=received)
    approved(storage, LATEST, 5, [], [records("car1")])

    found = storage.publication("vehicles").archive.coverage((NOON, NOON + DAY))

    assert [manifest.outbox for manifest in found.manifests] == ["outbox2", "outbox3"]


def test_a_replay_sends_the_records_of_all_runs_in_their_order(storage: Home):
    archive(storage, HISTORY, 1, [records("a", "b"), records("x")])
    archive(storage, HISTORY, 2, [[("cars", b"a", None)], []])

    manifest = replay(
        storage.publication(HISTORY.name),
        order(storage, HISTORY),
    )

    assert sent(storage, manifest) == [
        [(0, 0, "a", b'{"id":"a"}'), (1, 0, "b", b'{"id":"b"}'), (2, 1, "a", None)],
        [(0, 0, "x", b'{"id":"x"}')],
    ]
    assert (manifest.records, manifest.upserts, manifest.deletes) == (4, 3, 1)
    assert (manifest.replayed, manifest.skipped_newer, manifest.topics) == (2, 0, 1)
    assert [shard.transactions for shard in manifest.shards] == [2, 1]
    assert [shard.bytes for shard in manifest.shards] == [23, 11]
    assert manifest.headers == (("contexture-backfill", "2026-03-01T12:00:00+00:00"),)
    assert manifest.watermark is None
    assert storage.publication("vehicles").outboxes.status(manifest.outbox).status == "prepared"
    topics = pq.read_table(storage.path(FOLDER.topics(manifest.outbox)))
    assert topics.to_pylist() == [{"topic": "cars", "records": 4}]


def test_on_a_replica_only_what_is_still_the_newest_is_sent(storage: Home):
    first = [Held(name, sequence=1) for name in ("kept", "changed", "deleted")]
    archive(storage, LATEST, 1, [records("kept", "changed", "deleted")], first)
    tombstones: list[Record] = [("cars", b"deleted", None), ("cars", b"kept", None)]
    later = [Held("changed", "b", sequence=2), Held("deleted", removed=True)]
    archive(storage, LATEST, 2, [[*records("changed"), *tombstones]], later, received=NOON + DAY / 2)

    early = replay(
        storage.publication(LATEST.name),
        order(storage, LATEST, (NOON, NOON + DAY / 2)),
    )
    late = replay(
        storage.publication(LATEST.name),
        order(storage, LATEST, (NOON + DAY / 2, NOON + DAY)),
    )

    assert [key for _, _, key, _ in sent(storage, early)[0]] == ["kept"]
    assert (early.skipped_newer, early.records, early.read) == (2, 1, 3)
    # The tombstone of what lives again would undo the newer value, so it is skipped.
    assert [(key, value) for _, _, key, value in sent(storage, late)[0]] == [
        ("changed", b'{"id":"changed"}'),
        ("deleted", None),
    ]
    assert late.skipped_newer == 1


def test_on_a_replica_each_topic_has_a_newest_value_of_its_own_for_a_key(storage: Home):
    first = [Held(name, sequence=1, topics=(name,), key="car1") for name in ("color", "speed")]
    both: list[Record] = [(topic, b"car1", b"old") for topic in ("color", "speed")]
    archive(storage, LATEST, 1, [both], first)
    later = [Held("speed", "b", sequence=2, topics=("speed",), key="car1")]
    archive(storage, LATEST, 2, [[("speed", b"car1", b"new")]], later, received=NOON + DAY / 2)

    early = replay(
        storage.publication(LATEST.name),
        order(storage, LATEST, (NOON, NOON + DAY / 2)),
    )
    late = replay(
        storage.publication(LATEST.name),
        order(storage, LATEST, (NOON + DAY / 2, NOON + DAY)),
    )

    assert topics_of(storage, early) == {"color": 1}
    assert topics_of(storage, late) == {"speed": 1}
    assert (early.skipped_newer, late.skipped_newer) == (1, 0)


def test_on_a_replica_a_topic_that_lost_a_key_does_not_get_it_back(storage: Home):
    archive(storage, LATEST, 1, [[(topic, b"v1", b"old") for topic in ("all", "newest")]], [], received=NOON)
    moved = [Held("v1", sequence=1, topics=("all",))]
    archive(storage, LATEST, 2, [[("newest", b"v1", None)]], moved, received=NOON + DAY / 2)

    early = replay(
        storage.publication(LATEST.name),
        order(storage, LATEST, (NOON, NOON + DAY / 2)),
    )
    late = replay(
        storage.publication(LATEST.name),
        order(storage, LATEST, (NOON + DAY / 2, NOON + DAY)),
    )

    assert topics_of(storage, early) == {"all": 1}
    assert topics_of(storage, late) == {"newest": 1}


def topics_of(storage: Home, manifest: Manifest) -> dict[str, int]:
    """The records of each topic."""
    rows = pq.read_table(storage.path(FOLDER.topics(manifest.outbox))).to_pylist()
    return {row["topic"]: row["records"] for row in rows}


def test_a_key_keeps_its_order_where_the_number_of_shards_was_changed(storage: Home):
    archive(storage, HISTORY, 1, [records("x"), records("a")])
    archive(storage, HISTORY, 2, [[("cars", b"a", b"later")], [], records("y")])

    manifest = replay(
        storage.publication(HISTORY.name),
        order(storage, HISTORY),
    )

    assert sent(storage, manifest) == [
        [(0, 0, "x", b'{"id":"x"}'), (1, 0, "a", b'{"id":"a"}'), (2, 1, "a", b"later"), (3, 1, "y", b'{"id":"y"}')]
    ]
    assert (manifest.records, manifest.transactions) == (4, 2)


def in_envelopes(storage: Home, manifest: Manifest, ids: list[bytes | None], version: str) -> None:
    """Gives the records of an archived outbox headers: one that varies, and one that all of them have."""
    path = storage.path(f"{FOLDER.shard(manifest.outbox, 0)}/part-00000.parquet")
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.append_column("header:ce_id", pa.array(ids, pa.binary())), path)
    described = manifest.model_copy(update={"headers": (("ce_specversion", version),)})
    storage.write(FOLDER.manifest(manifest.outbox), described.to_json())


def test_a_replay_keeps_the_headers_that_each_run_gave_its_records(storage: Home):
    plain = archive(storage, HISTORY, 1, [records("a")])
    in_envelopes(storage, archive(storage, HISTORY, 2, [records("b", "c")]), [b"1", None], "1.0")
    in_envelopes(storage, archive(storage, HISTORY, 3, [records("d")]), [b"2"], "1.1")

    manifest = replay(
        storage.publication(HISTORY.name),
        order(storage, HISTORY),
    )

    (reader,) = (OutboxShardReader(storage, manifest, shard.shard) for shard in manifest.shards)
    rows = [row for batch in reader.batches(0) for row in batch.to_pylist()]
    assert [(row["key"], row["header:ce_id"], row["header:ce_specversion"]) for row in rows] == [
        (b"a", None, None),
        (b"b", b"1", b"1.0"),
        (b"c", None, b"1.0"),
        (b"d", b"2", b"1.1"),
    ]
    assert manifest.headers == (("contexture-backfill", "2026-03-01T12:00:00+00:00"),)
    assert OutboxShardReader(storage, plain, 0).varying_headers() == ()


def test_a_replay_is_made_once_and_is_the_same_again(storage: Home):
    archive(storage, LATEST, 1, [records("a")], [Held("a")])
    manifest = replay(storage.publication(LATEST.name), order(storage, LATEST))
    storage.remove(FOLDER.status(manifest.outbox))

    assert (
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST),
        )
        == manifest
    )
    assert [item.outbox for item in storage.publication("vehicles").outboxes.pending()] == [manifest.outbox]


def test_a_replay_is_no_archive_of_a_replay(storage: Home):
    archive(storage, LATEST, 1, [records("a")], [Held("a")])
    manifest = replay(storage.publication(LATEST.name), order(storage, LATEST))
    outboxes = storage.publication("vehicles").outboxes
    outboxes.set_status(manifest.outbox, "approved", reason="good")
    conclude(storage.publication(manifest.publication), manifest, cluster=None, target=None)

    assert [item.outbox for item in storage.publication("vehicles").archive.coverage((NOON, NOON + DAY)).manifests] == [
        "outbox1"
    ]


def test_without_an_archive_nothing_is_made_up(storage: Home):
    archive(storage, LATEST, 1, [records("a")])

    with pytest.raises(ConfigurationError, match="nothing of vehicles is archived between 2026-03-02") as error:
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, (NOON + DAY, NOON + 2 * DAY)),
        )

    assert "run the publication in mode full instead" in error.value.next_step
    assert storage.publication("vehicles").outboxes.pending() == []


def test_a_backfill_without_an_interval_is_refused(storage: Home):
    with pytest.raises(ConfigurationError, match="has no data interval"):
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, None),
        )


def test_what_a_registry_did_is_sent_again_in_its_own_transactions(storage: Home):
    owner = structures("vehicles", topics={"naming": "fixed", "topics": ["all"], "keep": "history"})
    logs = (
        [RegistryChange(11, ("FREQ", "AREA")), RegistryChange(12, ("AREA",), deletions=True)],
        [RegistryChange(13, ("FREQ",)), RegistryChange(13, ("UNIT",), deletions=True)],
    )
    for sequence, log in enumerate(logs, 1):
        manifest = registry_outbox(storage, owner, sequence, log)
        storage.publication("vehicles").outboxes.set_status(manifest.outbox, "approved", reason="good")
        conclude(storage.publication(manifest.publication), manifest, cluster=None, target=None)

    again = replay(storage.publication(owner.name), order(storage, owner))

    rows = [row for batch in OutboxShardReader(storage, again, 0).batches(0) for row in batch.to_pylist()]
    sent = [(row["transaction"], row["value"], row["header:contexture_registry_transaction"]) for row in rows]
    assert sent == [
        (0, b"11", b"11"),
        (0, b"11", b"11"),
        (1, None, b"12"),
        (2, b"13", b"13"),
        (3, None, b"13"),
    ]
    assert [row["position"] for row in rows] == [0, 1, 2, 3, 4]
    assert again.transactions == 4


def test_an_interval_that_lacks_a_run_is_refused_and_says_which(storage: Home):
    archive(storage, LATEST, 1, [records("a")])
    archive(storage, LATEST, 3, [records("c")], received=NOON + DAY / 2)

    with pytest.raises(PartlyArchivedError) as refused:
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST),
        )

    assert refused.value.message == (
        "between 2026-03-01T12:00:00+00:00 and 2026-03-02T12:00:00+00:00 vehicles lacks run 2, received between "
        "2026-03-01 12:00:00 and 2026-03-02 00:00:00"
    )
    assert refused.value.next_step.endswith("backfill again with replay_incomplete: send")
    assert storage.publication("vehicles").outboxes.pending() == []


def test_what_is_there_is_sent_when_that_is_enough_and_what_is_missing_stays_in_the_manifest(storage: Home):
    archive(storage, HISTORY, 1, [records("a")])
    archive(storage, HISTORY, 3, [records("c")], received=NOON + DAY / 2)

    manifest = replay(
        storage.publication(HISTORY.name),
        order(storage, HISTORY, incomplete="send"),
    )

    assert [key for _, _, key, _ in sent(storage, manifest)[0]] == ["a", "c"]
    assert manifest.missing == ("run 2, received between 2026-03-01 12:00:00 and 2026-03-02 00:00:00",)
    assert manifest.replayed_from == "archive"


def test_an_interval_of_which_nothing_is_left_says_what_was_there(storage: Home):
    archive(storage, LATEST, 4, [records("a")], received=NOON + DAY)

    with pytest.raises(ConfigurationError, match=r"\(missing: runs 1 to 3, received before 2026-03-02 12:00:00\)"):
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, incomplete="send"),
        )


def test_old_values_are_sent_over_newer_ones_only_when_the_order_allows_it(storage: Home):
    archive(storage, LATEST, 1, [records("a", "b")], [Held("a", sequence=1), Held("b", sequence=1)])
    archive(storage, LATEST, 2, [records("a")], [Held("a", "x", sequence=2)], received=NOON + DAY)

    kept, all_of_it = (
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST),
        ),
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, outdated="send"),
        ),
    )

    assert [key for _, _, key, _ in sent(storage, kept)[0]] == ["b"]
    assert [key for _, _, key, _ in sent(storage, all_of_it)[0]] == ["a", "b"]
    assert (all_of_it.sends_outdated, all_of_it.skipped_newer) == (True, 0)
    assert kept.outbox != all_of_it.outbox


def test_with_a_prefix_everything_goes_to_other_topics(storage: Home):
    archive(storage, LATEST, 1, [records("a"), records("b", topic="vans")], [Held("a", sequence=1)])
    archive(storage, LATEST, 2, [records("a"), []], [Held("a", "x", sequence=2)], received=NOON + DAY / 2)

    manifest = replay(
        storage.publication(LATEST.name),
        order(storage, LATEST, topic_prefix="again-"),
    )

    topics = pq.read_table(storage.path(FOLDER.topics(manifest.outbox)))
    assert topics.to_pylist() == [{"topic": "again-cars", "records": 2}, {"topic": "again-vans", "records": 1}]
    rows = [row for batch in OutboxShardReader(storage, manifest, 0).batches(0) for row in batch.to_pylist()]
    assert [(row["topic"], row["key"]) for row in rows] == [("again-cars", b"a"), ("again-cars", b"a")]
    assert (manifest.topic_prefix, manifest.skipped_newer) == ("again-", 0)


def test_a_prefix_that_ends_in_a_topic_of_live_runs_is_refused(storage: Home):
    archive(storage, LATEST, 1, [records("a", topic="s")], [Held("a")])

    with pytest.raises(ConfigurationError, match="live runs of vehicles fill cars"):
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, topic_prefix="car"),
        )
    with pytest.raises(ConfigurationError, match=r"contexture\.ledger\.s is the name of a ledger"):
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, topic_prefix="contexture.ledger."),
        )


def test_a_prefix_that_ends_in_a_topic_of_another_publication_is_refused(storage: Home):
    bikes = publication(name="bikes")
    conclude(
        storage.publication(bikes.name),
        approved(storage, bikes, 1, [Held("b", topics=["again_s"])], []),
        cluster=None,
        target=None,
    )
    archive(storage, LATEST, 1, [records("a", topic="s")])

    # Brokers take dots and underscores of names for the same.
    with pytest.raises(ConfigurationError, match=r"live runs of bikes fill again\.s"):
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, topic_prefix="again."),
        )
    assert (
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, topic_prefix="once-more."),
        ).topic_prefix
        == "once-more."
    )


def test_a_prefix_may_not_make_a_name_too_long_for_kafka(storage: Home):
    archive(storage, LATEST, 1, [records("a", topic="t" * 200)])

    with pytest.raises(ConfigurationError, match="has 250 characters; Kafka accepts 249"):
        replay(
            storage.publication(LATEST.name),
            order(storage, LATEST, topic_prefix="p" * 50),
        )


def test_each_run_is_reported_while_it_is_replayed(storage: Home):
    archive(storage, HISTORY, 1, [records("a")])
    archive(storage, HISTORY, 2, [records("b")])
    said: list[str] = []

    replay(
        storage.publication(HISTORY.name),
        order(storage, HISTORY),
        said.append,
    )

    assert said == ["shard 0: run 1 is replayed, 1 of 2", "shard 0: run 2 is replayed, 2 of 2"]
