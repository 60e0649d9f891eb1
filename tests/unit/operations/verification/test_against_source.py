"""The last record of each key against what a source holds, with a source and topics in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication
from builders.replica_topics import MemoryTopics
from builders.states import Held, state_table
from contexture.errors import ConfigurationError, RetriableError
from contexture.kafka import TopicRecord
from contexture.operations.verification.against_source import verify_against_source
from contexture.operations.verification.result import VerificationResult
from contexture.operations.verification.source_comparison import BEHIND, CHANGED, QUARANTINED
from contexture.operations.verification.source_view import (
    Difference,
    ExpectedRecord,
    Met,
    QuarantinedEntity,
    SourceHealth,
    check_answerable,
)
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOTHING = {"missing": 0, "extra": 0, "different": 0, "order": 0}


def key(name: str) -> bytes:
    return orjson.dumps(["vehicles", "/4wheels", name, "car"])


class MemorySource:
    """A source of entities with one text each; `after_walk` is called when all was read."""

    def __init__(self, **held: str) -> None:
        self.held = held
        self.refused: set[str] = set()
        self.behind: set[str] = set()
        self.counts: list[int] = []
        self.passed_over: set[str] = set()
        self.after_walk: Callable[[], object] = lambda: None

    def health(self) -> SourceHealth:
        return SourceHealth(NOON, (self.counts.pop(0) if self.counts else len(self.held),))

    def walk(self) -> Iterator[Met]:
        yield from [self._met(name) for name in self.held if name not in self.passed_over]
        self.after_walk()
        self.after_walk = lambda: None

    def again(self, entities: Sequence[bytes]) -> Iterator[Met]:
        yield from (self._met(name) for name in self.held if key(name) in entities)

    def can_ask(self, entity: bytes) -> bool:
        return True

    def entity_of(self, name: bytes) -> bytes:
        return name

    def entity_of_key(self, key: bytes) -> bytes | None:
        return key if key.startswith(b"[") else None

    def is_behind(self, entity: bytes | None, modified_us: int | None, watermark: str | None) -> bool:
        return entity is not None and orjson.loads(entity)[2] in self.behind

    def difference(self, expected: ExpectedRecord, record: TopicRecord) -> Difference | None:
        return None if record.value == expected.content else "body"

    def _met(self, name: str) -> Met:
        if name in self.refused:
            return Met(0, key(name), (QuarantinedEntity(key(name), None, "number-string"),))
        content = self.held[name].encode()
        return Met(0, key(name), (ExpectedRecord("cars", key(name), key(name), key(name), content, content, None),))


class City:
    """A publication that has sent cars to one topic."""

    def __init__(self, folder: Path, **sent: str) -> None:
        self.storage, self.publication, self.topics = Home(str(folder)), publication(), MemoryTopics()
        self.runs = 0
        self.ran(**sent)

    def ran(self, **sent: str) -> None:
        """A run that sends these."""
        self.runs += 1
        rows = [("cars", key(name), value.encode()) for name, value in sent.items()]
        manifest = outbox(self.storage, self.publication, self.runs, [rows])
        table = state_table([Held(name, sequence=self.runs) for name in sent]).to_pylist()
        for row, (topic, record_key, _) in zip(table, rows, strict=True):
            row["topics"], row["key"], row["identity"] = [topic], record_key, record_key
        delta = PublicationPaths("vehicles").state_delta(manifest.outbox)
        with self.storage.write_atomically(f"{delta}/shard-00000.parquet") as path:
            pq.write_table(state_table([]).from_pylist(table, schema=state_table([]).schema), path)
        self.storage.publication("vehicles").outboxes.set_status(manifest.outbox, "approved", reason="good")
        self.topics.send(rows)
        conclude(self.storage.publication(manifest.publication), manifest, cluster=None, target=None)

    def compared(self, source: MemorySource) -> VerificationResult:
        return verify_against_source(
            self.storage.publication(self.publication.name), self.publication, self.topics, source, clock=lambda: NOON
        )


@pytest.fixture
def city(tmp_path: Path) -> City:
    return City(tmp_path, a="1", b="2")


def test_what_the_source_holds_is_equal(city: City) -> None:
    found = city.compared(MemorySource(a="1", b="2"))

    assert (found.differences, found.unjudged, found.compared, found.held) == (NOTHING, {}, {"source": 2}, 2)
    assert found.summary == "2 keys in 1 topics are what the source holds"


def test_state_never_says_what_is_right(city: City) -> None:
    found = city.compared(MemorySource(b="3", c="1"))

    assert found.differences == {"missing": 1, "extra": 1, "different": 1, "order": 0}
    assert {(each.kind, orjson.loads(each.name)[2]) for each in found.samples} == {
        ("extra", "a"),
        ("different", "b"),
        ("missing", "c"),
    }


def test_a_change_that_is_published_while_the_source_is_read_is_no_difference(city: City) -> None:
    source = MemorySource(a="1", b="2")

    def happen() -> None:
        source.held = {**source.held, "a": "9"}
        city.ran(a="9")

    source.after_walk = happen
    found = city.compared(source)

    assert (found.differences, found.unjudged) == (NOTHING, {CHANGED: 1})


def test_what_comes_while_the_source_is_read_is_met_by_another_walk(city: City) -> None:
    source = MemorySource(a="1", b="2")

    def happen() -> None:
        source.held = {**source.held, "new": "1"}
        city.ran(new="1")

    source.after_walk = happen

    assert (city.compared(source).compared, city.compared(source).unjudged) == ({"source": 3}, {})


def test_what_the_next_run_publishes_and_what_is_quarantined_is_counted_apart(city: City) -> None:
    source = MemorySource(a="9", b="no number")
    source.behind, source.refused = {"a"}, {"b"}

    found = city.compared(source)

    assert (found.differences, found.unjudged) == (NOTHING, {BEHIND: 1, QUARANTINED: 1})


def test_a_walk_that_meets_less_than_is_counted_is_tried_again_and_gives_no_verdict(city: City) -> None:
    source = MemorySource(a="1", b="2")
    source.passed_over = {"b"}

    with pytest.raises(RetriableError, match="walk 0 of the source read 1 of 2"):
        city.compared(source)
    source.after_walk = lambda: source.passed_over.clear()

    assert city.compared(source).is_equal


@pytest.mark.parametrize("counts", [[2, 0], [3, 2]])
def test_the_greater_count_has_to_be_met(city: City, counts: list[int]) -> None:
    source = MemorySource(a="1")
    source.counts = counts * 3

    with pytest.raises(RetriableError, match="was not compared, because its source was not read completely"):
        city.compared(source)


def test_a_source_that_counts_nothing_gives_no_verdict(city: City) -> None:
    with pytest.raises(RetriableError, match="the source counts nothing, and something was published"):
        city.compared(MemorySource())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"message": {"key": "none"}, "topics": {"keep": "history"}, "detects": False}, "no key of their own"),
        ({"mode": "notifications"}, "which may be a part of an entity"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_reason(changes: dict[str, Any], reason: str) -> None:
    source = publication().source.model_dump(exclude_defaults=True)
    source["detect_deletions"] = changes.pop("detects", True)
    source["mode"] = changes.pop("mode", "changes")

    with pytest.raises(ConfigurationError, match=reason):
        check_answerable(publication(source=source, **changes))
