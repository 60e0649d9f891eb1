"""Verifying a publication at one moment, with topics in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import Record, outbox, publication, say_whom
from builders.replica_topics import MemoryTopics
from builders.states import Held, state_table
from contexture.errors import ConfigurationError, RetriableError
from contexture.events import content_hash, parse_json
from contexture.monitoring import RunTables, RunTableWriter
from contexture.monitoring.alerts import AlertKind, kind_of
from contexture.operations.actions.verify import verify_and_report, write_report
from contexture.operations.verification.comparison import MOVING, REMOVED, WITHHELD
from contexture.operations.verification.result import VerificationResult
from contexture.operations.verification.verify import BACKFILLED, basis_of, verify
from contexture.publications import Publication
from contexture.sending import LedgerEntry
from contexture.storage.conclusion import conclude
from contexture.storage.delivery import DeadLetterIndex
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest

NOW = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
NOTHING = {"missing": 0, "extra": 0, "different": 0, "order": 0}


class City:
    """A publication, its home, and its topics."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.storage = Home(str(folder))
        self.publication: Publication = publication(**changes)
        self.outboxes = self.storage.publication(self.publication.name).outboxes
        self.topics = MemoryTopics()

    def prepared(self, sequence: int, rows: Sequence[Record]) -> Manifest:
        """An approved outbox, with what it changes in state."""
        manifest = outbox(self.storage, self.publication, sequence, [rows])
        delta = PublicationPaths(self.publication.name).state_delta(manifest.outbox)
        held = [Held(key.decode(), sequence=sequence, removed=value is None) for _, key, value in rows]
        table = state_table(held).to_pylist()
        for row, (topic, _, value) in zip(table, rows, strict=True):
            row["topics"], row["content_hash"] = [topic], content(value) if value else b"a".ljust(32)
        with self.storage.write_atomically(f"{delta}/shard-00000.parquet") as path:
            pq.write_table(state_table([]).from_pylist(table, schema=state_table([]).schema), path)
        self.outboxes.set_status(manifest.outbox, "approved", reason="good")
        return manifest

    def ran(self, sequence: int, rows: Sequence[Record]) -> None:
        """A run from its outbox to its end."""
        manifest = self.prepared(sequence, rows)
        self.topics.send(rows)
        conclude(self.storage.publication(manifest.publication), manifest, cluster=None, target=None)

    def verified(self) -> Any:
        return verify(self.storage.publication(self.publication.name), self.publication, self.topics, clock=lambda: NOW)


def car(name: str, speed: int = 1, topic: str = "cars") -> Record:
    return topic, name.encode(), f'{{"id":"{name}","speed":{speed}}}'.encode()


def content(value: bytes) -> bytes:
    return content_hash(parse_json(value))


@pytest.fixture
def city(tmp_path: Path) -> City:
    return City(tmp_path)


def test_what_runs_sent_is_equal(city: City) -> None:
    city.ran(1, [car("a"), car("b"), car("c", topic="vans")])
    city.ran(2, [car("a", 2), ("cars", b"b", None)])

    found = city.verified()

    assert found.is_equal
    assert found.differences == NOTHING
    assert found.summary == "2 keys in 2 topics are as they should be"
    assert (found.held, found.records, found.topics, found.partitions) == (2, 5, 2, 2)
    assert (found.basis, found.sequence, found.outbox) == ("keys", 2, "outbox2")
    assert found.compared == {"bytes": 2}


def test_each_damage_is_reported(city: City) -> None:
    city.ran(1, [car("a"), car("b"), car("c")])
    city.topics.log = [each for each in city.topics.log if each.key != b"a"]
    city.topics.send([car("b", 9), car("stranger")])

    found = city.verified()

    assert found.differences == {"missing": 1, "extra": 1, "different": 0, "order": 1}
    assert found.summary == "the topics differ from what was sent: 1 missing, 1 extra, 1 order, of 3 keys"
    assert [sample.name for sample in found.samples] == ["a", "stranger", "b"]


def test_what_is_no_longer_archived_is_compared_by_its_content(city: City) -> None:
    city.ran(1, [car("a"), car("b")])
    city.storage.remove(PublicationPaths("vehicles").outbox("outbox1"))

    assert city.verified().compared == {"content": 2}
    city.topics.log.pop()
    city.topics.send([car("b", 9)])
    assert city.verified().differences == {**NOTHING, "different": 1}


def test_an_outbox_that_is_being_sent_raises_no_false_alarm(city: City) -> None:
    city.ran(1, [car("a"), car("b"), car("c")])
    city.prepared(2, [car("a", 2), ("cars", b"b", None), car("new"), car("late")])
    city.topics.send([car("a", 2), ("cars", b"b", None), car("new")])

    found = city.verified()

    assert found.differences == NOTHING
    assert found.unjudged == {MOVING: 4}


def test_what_went_to_the_dead_letters_is_not_missed(city: City) -> None:
    city.ran(1, [car("a"), car("b")])
    manifest = city.prepared(2, [car("a", 2), car("b", 2), car("c", 2)])
    say_whom(city.storage, manifest)
    city.topics.send([car("a", 2)])
    refused = DeadLetterIndex(shards={0: (1, 2)})
    conclude(city.storage.publication(manifest.publication), manifest, cluster=None, target=None, dead_letters=refused)

    found = city.verified()

    # Of b the topics should hold what they held before, and of c nothing.
    assert (found.differences, found.held, found.compared) == (NOTHING, 2, {"bytes": 2})
    city.topics.log.pop(1)
    assert city.verified().differences == {**NOTHING, "missing": 1}


def test_what_was_sent_in_part_is_not_judged(city: City) -> None:
    city.ran(1, [car("a"), car("b")])
    manifest = city.prepared(2, [car("b", 2), car("b", 3)])
    say_whom(city.storage, manifest)
    city.topics.send([car("b", 2)])
    refused = DeadLetterIndex(shards={0: (1,)})
    conclude(city.storage.publication(manifest.publication), manifest, cluster=None, target=None, dead_letters=refused)

    found = city.verified()

    assert (found.differences, found.unjudged) == (NOTHING, {WITHHELD: 1})


def test_what_is_sent_after_the_cut_is_not_looked_at(city: City) -> None:
    city.ran(1, [car("a")])
    city.topics.when_cut = lambda: city.topics.send([car("a", 9), car("b")])

    assert city.verified().is_equal


def test_a_run_that_concludes_in_between_makes_it_look_again(city: City) -> None:
    city.ran(1, [car("a")])

    def conclude_one() -> None:
        city.topics.when_cut = lambda: None
        city.ran(2, [car("a", 2), car("b")])

    city.topics.when_cut = conclude_one
    found = city.verified()

    assert found.is_equal
    assert (found.sequence, found.held) == (2, 2)


@pytest.mark.slow
def test_one_that_concludes_all_the_time_is_given_up(city: City) -> None:
    city.ran(1, [car("a")])
    sequences = iter(range(2, 100))
    city.topics.when_cut = lambda: city.ran(next(sequences), [car("a")])

    with pytest.raises(RetriableError, match="faster than its state can be read"):
        city.verified()


def test_an_outbox_that_was_given_up_may_be_there_in_part(city: City) -> None:
    city.ran(1, [car("a")])
    manifest = city.prepared(2, [car("a", 2), car("b")])
    city.topics.send([car("a", 2)])
    city.outboxes.set_status(manifest.outbox, "abandoned", reason="by hand")

    assert city.verified().differences == NOTHING


def test_a_topic_that_is_gone_is_named(city: City) -> None:
    city.ran(1, [car("a"), car("b", topic="vans")])
    city.topics.log.pop()

    found = city.verified()

    assert found.missing_topics == ("vans",)
    assert found.differences == {**NOTHING, "missing": 1}


def test_nothing_published_is_nothing_to_verify(city: City) -> None:
    with pytest.raises(ConfigurationError, match="nothing of publication vehicles was published yet"):
        city.verified()


def test_another_instance_that_is_ahead_is_reported(city: City) -> None:
    city.ran(1, [car("a")])
    state = city.storage.publication("vehicles").state
    state.commit(state.pointer().model_copy(update={"watermark": "41"}))
    theirs = LedgerEntry("theirs", 9, 1, 1, 1, 0, 42, NOW)
    city.topics.ledger = {0: theirs}

    with pytest.raises(RetriableError, match="another instance has sent more"):
        city.verified()


def test_history_topics_may_lose_records_and_take_backfills(tmp_path: Path) -> None:
    city = City(tmp_path, topics={"keep": "history"})
    city.ran(1, [car("a"), car("b")])
    city.topics.send([car("b", 0)], headers=(("contexture-backfill", b"2026-01-01"),))
    city.topics.log = city.topics.log[1:]
    city.topics.removed = frozenset({"cars"})

    found = city.verified()

    assert found.differences == NOTHING
    assert found.unjudged == {REMOVED: 1, BACKFILLED: 1}


def test_compacted_topics_must_not_lose_records(city: City) -> None:
    city.ran(1, [car("a"), car("b")])
    city.topics.log = city.topics.log[1:]
    city.topics.removed = frozenset({"cars"})

    assert city.verified().differences == {**NOTHING, "missing": 1}


def test_what_another_publication_holds_in_a_shared_topic_is_not_extra(tmp_path: Path) -> None:
    theirs, ours = City(tmp_path, name="bikes"), City(tmp_path)
    ours.ran(1, [car("a")])
    theirs.ran(1, [car("bike")])
    ours.topics.send([car("bike")])

    assert ours.verified().is_equal


@pytest.mark.parametrize(
    ("changes", "basis"),
    [
        ({}, "keys"),
        ({"message": {"key": "type"}}, "keys"),
        ({"message": {"key": "none"}, "topics": {"keep": "history"}}, "records"),
        ({"message": {"format": "cygnus-lines"}, "topics": {"keep": "history"}}, "keys"),
        (
            {"message": {"format": "cygnus-lines"}, "topics": {"keep": "history"}, "batches": {"batch_size": 10}},
            "records",
        ),
    ],
)
def test_records_without_a_key_of_their_own_are_compared_one_by_one(changes: dict[str, Any], basis: str) -> None:
    source = {"source": {**publication().source.model_dump(exclude_defaults=True), "detect_deletions": False}}
    assert basis_of(publication(**changes, **source)) == basis


def test_records_are_compared_with_the_archive(tmp_path: Path) -> None:
    source = publication().source.model_dump(exclude_defaults=True) | {"detect_deletions": False}
    city = City(tmp_path, source=source, message={"key": "none"}, topics={"keep": "history"})
    city.ran(1, [car("a"), car("b")])
    city.ran(2, [car("a", 2)])
    assert city.verified().is_equal
    city.topics.send([car("a", 3)])
    city.topics.log = city.topics.log[1:]

    found = city.verified()

    assert found.basis == "records"
    assert found.differences == {**NOTHING, "missing": 1, "extra": 1}


def test_the_outcome_is_kept_as_report_and_row(city: City) -> None:
    city.ran(1, [car("a"), car("<script>alert(1)</script>")])
    city.topics.log = city.topics.log[:1]
    said: list[str] = []
    store = RunTables.of_home(city.storage.root)
    assert store is not None

    with RunTableWriter(store, said.append) as journal:
        reported = verify_and_report(
            city.storage.publication(city.publication.name),
            city.publication,
            city.topics,
            journal=journal,
            report=said.append,
        )

    page = Path(reported.uri).read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page, "it needs no network"
    written = Path(reported.uri).with_name("verification.json").read_bytes()
    assert VerificationResult.model_validate_json(written) == reported.found
    row = store.last_verification("vehicles")
    assert row is not None
    assert (row.equal, row.missing, row.expected, row.summary) == (False, 1, 2, reported.found.summary)
    assert city.storage.uri(row.report) == reported.uri
    with pytest.raises(ConfigurationError, match=r"1 missing.*mode full") as failure:
        reported.raise_differences()
    assert reported.uri in failure.value.next_step
    assert kind_of(failure.value, "verify") is AlertKind.REPLICA_DIFFERS
    store.close()


@pytest.mark.slow
def test_the_oldest_reports_go(city: City) -> None:
    city.ran(1, [car("a")])
    found = city.verified()

    for minute in range(35):
        write_report(
            city.storage.publication(city.publication.name),
            found.model_copy(update={"verified_at": NOW.replace(minute=minute)}),
        )

    kept = city.storage.folders("vehicles/verification")
    assert len(kept) == 30
    assert kept[0] == "20260301T130500000000Z"
