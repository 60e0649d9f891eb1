"""The distribution of walks over tasks; needs pyspark's classes, but no session."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from contexture.errors import RetriableError
from contexture.sources.ngsi.query import EntityQuery
from spark_jobs.data_sources.walks import Walk, WalkSelection, WalkShare, count_walks, share_walks

pytestmark = pytest.mark.spark

SINCE = "2026-01-01T00:00:00.000Z"


@dataclass
class Source:
    """A broker with so many entities below each path, one a second."""

    entities: dict[str, int]
    queried: list[tuple[str, int]] = field(default_factory=list)
    deepest: int = 10**9

    def count(self, query: EntityQuery) -> int:
        return self.entities[query.service_path]

    def time_at(self, query: EntityQuery, place: int) -> str | None:
        self.queried.append((query.service_path, place))
        if place > self.deepest:
            raise RetriableError("sorting takes too much memory", next_step="make an index")
        time = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=place)
        return time.isoformat() if place < self.entities[query.service_path] else None


def share(source: Source, selection: WalkSelection) -> tuple[WalkShare, ...]:
    walks = selection.walks()
    return share_walks(source, walks, count_walks(source, walks), int(selection.parallel_readers))


def bounds_of(share: WalkShare) -> list[tuple[int, int, str | None, str | None]]:
    return [(walk.number, walk.slice, walk.query.since, walk.query.until) for walk in share.walks]


def test_a_small_source_is_one_walk_and_no_time_is_queried() -> None:
    source = Source({"/a": 7999})
    shares = share(source, WalkSelection(service_path="/a", parallel_readers="4"))
    assert [bounds_of(one) for one in shares] == [[(0, 0, None, None)]]
    assert source.queried == []


def test_a_large_source_is_cut_into_one_slice_for_each_reader() -> None:
    source = Source({"/a": 90_000})
    shares = share(source, WalkSelection(service_path="/a", parallel_readers="3"))
    first, second = "2026-01-01T08:20:00.000Z", "2026-01-01T16:40:00.000Z"
    assert [bounds_of(one) for one in shares] == [
        [(0, 0, None, first)],
        [(0, 1, first, second)],
        [(0, 2, second, None)],
    ]
    assert source.queried == [("/a", 30_000), ("/a", 60_000)]


def test_one_reader_reads_everything_in_order() -> None:
    source = Source({"/a": 90_000, "/b": 10})
    shares = share(source, WalkSelection(service_path="/a,/b", parallel_readers="1"))
    assert [bounds_of(one) for one in shares] == [[(0, 0, None, None), (1, 0, None, None)]]


def test_small_walks_go_together_and_none_is_left_out() -> None:
    source = Source({"/a": 500, "/b": 400, "/c": 300, "/d": 200})
    shares = share(source, WalkSelection(service_path="/a,/b,/c,/d", parallel_readers="2"))
    assert [[walk.query.service_path for walk in one.walks] for one in shares] == [["/a", "/d"], ["/b", "/c"]]


def test_only_a_walk_above_a_fair_share_is_cut() -> None:
    source = Source({"/a": 90_000, "/b": 9_000})
    shares = share(source, WalkSelection(service_path="/a,/b", parallel_readers="2"))
    assert sorted((walk.number, walk.slice) for one in shares for walk in one.walks) == [(0, 0), (0, 1), (1, 0)]


def test_a_walk_along_changes_is_never_cut() -> None:
    source = Source({"/a": 90_000})
    selection = WalkSelection(service_path="/a", mode="changes", since=SINCE, identities="true", parallel_readers="2")
    shares = share(source, selection)
    walks = sorted((walk for one in shares for walk in one.walks), key=lambda walk: (walk.number, walk.slice))
    assert [(walk.number, walk.slice, walk.bodies) for walk in walks] == [(0, 0, True), (1, 0, False), (1, 1, False)]
    assert len(shares) == 2


@pytest.mark.parametrize("readers", [1, 2, 3, 16])
def test_there_are_never_more_shares_than_readers(readers: int) -> None:
    source = Source({f"/{name}": 12_345 * (number % 4) for number, name in enumerate("abcdefgh")})
    paths = ",".join(source.entities)
    shares = share(source, WalkSelection(service_path=paths, parallel_readers=str(readers)))
    assert len(shares) <= readers
    assert {walk.query.service_path for one in shares for walk in one.walks} == set(source.entities)


@pytest.mark.parametrize(("deepest", "slices", "queries"), [(0, 1, 1), (30_000, 2, 2), (60_000, 3, 2)])
def test_walks_of_a_broker_that_cannot_find_a_time_far_down_are_cut_less(
    deepest: int, slices: int, queries: int
) -> None:
    source = Source({"/a": 90_000}, deepest=deepest)
    shares = share(source, WalkSelection(service_path="/a", parallel_readers="3"))
    walks = sorted((walk for one in shares for walk in one.walks), key=lambda walk: walk.slice)
    assert (len(walks), len(source.queried)) == (slices, queries)
    bounds = [(walk.query.since, walk.query.until) for walk in walks]
    assert (bounds[0][0], bounds[-1][1]) == (None, None)
    assert all(one[1] == other[0] for one, other in pairwise(bounds))


def test_a_source_that_shrinks_after_it_was_counted_is_cut_less() -> None:
    source = Source({"/a": 20_000})
    walks: tuple[Walk, ...] = WalkSelection(service_path="/a").walks()
    shares = share_walks(source, walks, {0: 90_000}, 3)
    assert sorted(walk.slice for one in shares for walk in one.walks) == [0]
