"""A backfill from a registry's log: its changes with the contents of their time, or a list of what is missing.

Reading and preparing are real; the registry and Spark's tasks are in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.layout import PublicationPaths
from builders.registry import urn
from builders.replica_world import World
from contexture.storage.manifests import Manifest
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.replay import NoLogError, PartlyArchivedError
from fakes.structure_registry import NOON

A, A2, B, C = urn("A"), urn("A", "2.0"), urn("B"), urn("C")
DAY = timedelta(days=1)
HISTORY = {"topics": ["structures"], "keep": "history"}
SentTransactions = list[tuple[int, list[tuple[str, str, bytes | None]]]]


def minute(number: float) -> datetime:
    """Returns when the registry makes a transaction."""
    return NOON + timedelta(minutes=number)


def after(number: int) -> tuple[datetime, datetime]:
    """Returns the interval after a transaction."""
    return minute(number + 0.5), minute(1000)


def sent_transactions(world: World, manifest: Manifest) -> SentTransactions:
    """Returns, for each Kafka transaction, that of the registry, and topic, key and value of its records."""
    storage = world.instances[0].storage
    transactions: dict[int, tuple[int, list[tuple[str, str, bytes | None]]]] = {}
    for row in rows(storage, manifest):
        _, records = transactions.setdefault(row["transaction"], (row["source_transaction"], []))
        records.append((row["topic"], row["key"].decode(), row["value"]))
    return list(transactions.values())


def rows(storage: Any, manifest: Manifest) -> Iterator[dict[str, Any]]:
    for batch in OutboxShardReader(storage, manifest, 0).batches(0):
        yield from batch.to_pylist()


def live(world: World) -> SentTransactions:
    """Returns what the last concluded run sent."""
    outboxes = world.instances[0].storage.publication(world.publication.name).outboxes
    return sent_transactions(world, outboxes.manifest(outboxes.all()[-1].outbox))


def shown(found: SentTransactions) -> list[tuple[int, list[str]]]:
    """Shortens transactions to `+` or `-` and the id of each structure."""
    return [
        (number, [("-" if value is None else "+") + key.rpartition("X:")[2] for _, key, value in records])
        for number, records in found
    ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A and B were there from the first transaction on, and are published."""
    made = World(tmp_path, topics=HISTORY)
    made.registry.submit({A: ("a",), B: ("b",)})
    made.instances[0].run("full")
    return made


def test_contents_are_as_they_were_and_deletions_apart(world: World) -> None:
    world.registry.submit({A: ("a", "second"), C: ("c",)})
    world.registry.submit({A: ("a", "third")}, delete=[B])

    manifest = world.instances[0].past(after(1))

    found = sent_transactions(world, manifest)
    assert shown(found) == [(2, ["+A(1.0)", "+C(1.0)"]), (3, ["+A(1.0)"]), (3, ["-B(1.0)"])]
    assert b'id="second"' in (found[0][1][0][2] or b"")
    assert b'id="third"' not in (found[0][1][0][2] or b"")
    assert b'id="third"' in (found[1][1][0][2] or b"")
    assert (manifest.replayed_from, manifest.missing, manifest.shards[0].registry) == ("source", (), ())
    assert manifest.headers == (("contexture-backfill", "2026-11-01T12:01:30+00:00"),)


def test_only_the_interval_is_published_its_end_excluded(world: World) -> None:
    for codes in ("second", "third", "fourth"):
        world.registry.submit({A: (codes,)})

    assert shown(sent_transactions(world, world.instances[0].past((minute(2), minute(4))))) == [
        (2, ["+A(1.0)"]),
        (3, ["+A(1.0)"]),
    ]


def test_neither_state_nor_what_waits_is_touched(world: World) -> None:
    world.registry.submit({A: ("second",)}, delete=[B])
    before = world.instances[0].storage.publication("structures").state.pointer()

    manifest = world.instances[0].past(after(1))

    assert world.instances[0].storage.publication("structures").state.pointer() == before
    assert (manifest.mode, manifest.watermark, manifest.flush) == ("backfill", None, False)


def test_an_interval_in_which_nothing_happened_makes_an_outbox_without_records(world: World) -> None:
    manifest = world.instances[0].past(after(1))

    assert (manifest.records, manifest.missing, manifest.replayed_from) == (0, (), "source")


def test_what_the_log_no_longer_contains_is_refused_and_listed(world: World) -> None:
    for codes in ("second", "third", "fourth"):
        world.registry.submit({A: (codes,)})
    world.registry.forgotten = 3

    with pytest.raises(PartlyArchivedError) as refused:
        world.instances[0].past(after(1))

    listed = "transactions 2 to 3 of the registry, which neither the registry's log nor an archive holds"
    assert refused.value.message == (
        f"between 2026-11-01T12:01:30+00:00 and 2026-11-02T04:40:00+00:00 structures lacks {listed}"
    )
    manifest = world.instances[0].past(after(1), incomplete="send")
    assert manifest.missing == (listed,)
    assert shown(sent_transactions(world, manifest)) == [(4, ["+A(1.0)"])]


def test_what_the_log_no_longer_contains_comes_from_the_archive(world: World) -> None:
    world.registry.submit({A: ("second",)})
    world.registry.submit(delete=[B])
    world.instances[0].run("changes")
    sent = live(world)
    world.registry.submit({A: ("fourth",)})
    world.registry.forgotten = 3

    manifest = world.instances[0].past(after(1))

    assert sent_transactions(world, manifest)[:-1] == sent
    assert shown(sent_transactions(world, manifest)) == [(2, ["+A(1.0)"]), (3, ["-B(1.0)"]), (4, ["+A(1.0)"])]
    assert manifest.missing == ()


def test_what_runs_of_the_interval_read_is_published_too_where_other_intervals_may_come_from_the_archive(
    world: World,
) -> None:
    """Archived runs are found by when they read; the log goes by when the registry made its transactions."""
    world.registry.submit({A: ("second",)})
    world.instances[0].run("changes")
    now = datetime.now(UTC)
    hour = (now - timedelta(hours=1), now + timedelta(hours=1))

    assert sent_transactions(world, world.instances[0].past(hour, replay_from="auto")) == live(world)
    assert world.instances[0].past(hour).records == 0


def test_a_gap_that_was_closed_by_a_comparison_is_archived_only_at_its_end(world: World) -> None:
    world.registry.submit({A: ("second",)})
    world.registry.submit({A: ("third",), C: ("c",)})
    world.registry.forgotten = 3
    world.instances[0].run("changes")
    sent = live(world)

    manifest = world.instances[0].past(after(1), incomplete="send")

    assert sent_transactions(world, manifest) == sent
    assert manifest.missing == ("transaction 2 of the registry, which neither the registry's log nor an archive holds",)


def test_an_archived_run_that_published_nothing_of_a_transaction_leaves_nothing_missing(tmp_path: Path) -> None:
    world = World(tmp_path, topics=HISTORY, source={"kind": "sdmx", "connection": "r", "select": ["Codelist=X:A(*)"]})
    world.registry.submit({A: ("a",)})
    world.instances[0].run("full")
    world.registry.submit({C: ("c",)})
    world.instances[0].run("changes")
    world.registry.forgotten = 2

    manifest = world.instances[0].past(after(1))

    assert (manifest.records, manifest.missing) == (0, ())


def test_without_as_of_only_deletions_come_from_the_log(world: World) -> None:
    world.registry.has_history = False
    world.registry.submit({A: ("second",)})
    world.registry.submit(delete=[B])

    manifest = world.instances[0].past(after(1), incomplete="send")

    assert shown(sent_transactions(world, manifest)) == [(3, ["-B(1.0)"])]
    assert manifest.missing == (
        "transaction 2 of the registry, whose contents the registry cannot show as they were then",
    )


def test_without_as_of_what_is_archived_is_published_as_it_was(world: World) -> None:
    world.registry.has_history = False
    world.registry.submit({A: ("second",)})
    world.instances[0].run("changes")
    sent = live(world)
    world.registry.submit({A: ("third",)})
    world.instances[0].run("changes")

    manifest = world.instances[0].past((minute(2), minute(3)))

    assert sent_transactions(world, manifest) == sent
    assert manifest.missing == ()


def test_a_transaction_of_which_one_content_is_denied_is_left_out_whole(world: World) -> None:
    world.registry.submit({A: ("second",), C: ("c",)}, delete=[B])
    world.registry.submit({C: ("third",)})
    world.registry.denied = {A}

    manifest = world.instances[0].past(after(1), incomplete="send")

    assert shown(sent_transactions(world, manifest)) == [(3, ["+C(1.0)"])]
    assert manifest.missing == (
        "transaction 2 of the registry, whose contents the registry cannot show as they were then",
    )


def test_a_log_that_is_not_searched_to_the_beginning_of_the_interval_says_so(world: World) -> None:
    world.registry.submit({A: ("second",)})
    world.registry.reaches_back = False

    with pytest.raises(PartlyArchivedError, match="lacks transactions before 2 of the registry, if there were any"):
        world.instances[0].past(after(1))


def test_a_registry_without_a_log_has_no_past(tmp_path: Path) -> None:
    world = World(tmp_path, has_log=False)
    world.registry.submit({A: ("a",)})

    with pytest.raises(NoLogError, match="the registry at memory has no log"):
        world.instances[0].past(after(0))


def test_on_a_replica_only_what_undoes_nothing_is_sent(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.registry.submit({A: ("a",), B: ("b",), C: ("c",)})
    world.instances[0].run("full")
    world.registry.submit({A: ("second",), B: ("second",)})
    world.registry.submit({A: ("third",)}, delete=[C])
    world.registry.submit({B: ("fourth",)})
    world.instances[0].run("changes")

    manifest = world.instances[0].past((minute(2), minute(4)))

    # Of A the second is overtaken by the third, and of B by the fourth, which is not in the interval.
    assert shown(sent_transactions(world, manifest)) == [(3, ["+A(1.0)"]), (3, ["-C(1.0)"])]
    assert manifest.skipped_newer == 2
    everything = world.instances[0].past((minute(2), minute(4)), outdated="send")
    assert shown(sent_transactions(world, everything)) == [
        (2, ["+A(1.0)", "+B(1.0)"]),
        (3, ["+A(1.0)"]),
        (3, ["-C(1.0)"]),
    ]
    assert everything.skipped_newer == 0


def test_a_structure_that_came_again_on_a_replica_gets_no_tombstone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.registry.submit({A: ("a",), B: ("b",)})
    world.instances[0].run("full")
    world.registry.submit(delete=[B])
    world.registry.submit({B: ("again",)})
    world.instances[0].run("changes")

    manifest = world.instances[0].past((minute(2), minute(3)))

    assert (sent_transactions(world, manifest), manifest.skipped_newer) == ([], 1)


def test_with_a_prefix_all_of_it_goes_to_other_topics(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.registry.submit({A: ("a",)})
    world.instances[0].run("full")
    world.registry.submit({A: ("second",)})
    world.registry.submit(delete=[A])
    world.instances[0].run("changes")

    manifest = world.instances[0].past(after(1), topic_prefix="again-")

    assert [
        (number, [(topic, value is None) for topic, _, value in records])
        for number, records in sent_transactions(world, manifest)
    ] == [
        (2, [("again-structures", False)]),
        (3, [("again-structures", True)]),
    ]
    assert (manifest.skipped_newer, manifest.topic_prefix) == (0, "again-")


def test_the_latest_version_is_the_one_of_then(tmp_path: Path) -> None:
    source = {"kind": "sdmx", "connection": "r", "select": ["Codelist=X:*(~)"]}
    world = World(tmp_path, topics=HISTORY, source=source)
    world.registry.submit({A: ("a",)})
    world.instances[0].run("full")
    world.registry.submit({A: ("second",)})
    world.registry.submit({A2: ("new",)})
    world.registry.submit(delete=[A2])

    manifest = world.instances[0].past(after(1))

    assert shown(sent_transactions(world, manifest)) == [
        (2, ["+A(1.0)"]),
        (3, ["+A(2.0)"]),
        (3, ["-A(1.0)"]),
        (4, ["+A(1.0)"]),
        (4, ["-A(2.0)"]),
    ]


def test_two_transactions_of_one_moment_that_touch_one_structure_are_not_distinguished(world: World) -> None:
    world.registry.submit({A: ("second",)})
    world.registry.submit({A: ("third",)})
    world.registry.at_one_moment(2, 3)

    manifest = world.instances[0].past(after(1), incomplete="send")

    assert shown(sent_transactions(world, manifest)) == [(3, ["+A(1.0)"])]
    assert manifest.missing[0].startswith("transaction 2 of the registry, whose contents")


URNS = [urn(name, version) for name in ("CL_A", "CL_B") for version in ("1.0", "2.0")] + [urn("CL_C")]
SUBMISSIONS = st.tuples(st.sets(st.sampled_from(URNS), max_size=3), st.sets(st.sampled_from(URNS), max_size=2))
ROUTES = [
    {"topics": ["structures"]},
    {"topics": ["one", "two"], "routes": [{"select": "Codelist=X:CL_A(*)", "topics": ["a-{agency}"]}]},
    {"topics": ["all"], "routes": [{"select": "Codelist=X:*(~)", "topics": ["latest"]}]},
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(SUBMISSIONS, min_size=1, max_size=6),
    st.sampled_from(ROUTES),
    st.sampled_from([[], ["Codelist=X:*(~)"], ["Codelist=X:CL_A(*)"]]),
)
def test_a_backfill_publishes_what_a_live_run_published(
    history: list[tuple[set[str], set[str]]], routes: dict[str, Any], select: list[str]
) -> None:
    with TemporaryDirectory() as home:
        source = {"kind": "sdmx", "connection": "r", "select": select}
        world = World(Path(home), topics={**routes, "keep": "history"}, source=source)
        world.registry.submit({urn("CL_A"): ("first",), urn("CL_C"): ("first",)})
        world.instances[0].run("full")
        for number, (changed, deleted) in enumerate(history):
            there = world.registry.now
            gone = [each for each in sorted(deleted) if each in there and each not in changed]
            world.registry.submit(dict.fromkeys(sorted(changed), (f"at{number}",)), delete=gone)
        world.instances[0].run("changes")

        assert sent_transactions(world, world.instances[0].past(after(1))) == live(world)


def test_nothing_of_a_refused_backfill_stays_to_be_sent(world: World) -> None:
    world.registry.submit({A: ("second",)})
    world.registry.forgotten = 2
    with pytest.raises(PartlyArchivedError):
        world.instances[0].past(after(1))

    storage = world.instances[0].storage
    assert storage.publication("structures").outboxes.pending() == []
    assert not storage.exists(PublicationPaths("structures").landing_before("run2"))
