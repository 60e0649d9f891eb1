"""One walk cut into several: together they meet what it would."""

from __future__ import annotations

import pytest

from contexture.sources.ngsi.paging import slice_boundaries, slice_count, sliced
from contexture.sources.ngsi.query import EntityQuery

FIRST, SECOND = "2026-01-01T00:00:01.000Z", "2026-01-01T00:00:02.000Z"


@pytest.mark.parametrize(
    ("entities", "page_size", "most", "slices"),
    [
        (0, 1000, 4, 1),
        (7_999, 1000, 4, 1),
        (8_000, 1000, 4, 2),
        (1_000_000, 1000, 4, 4),
        (1_000_000, 1000, 1, 1),
        (1_500, 50, 3, 3),
    ],
)
def test_a_slice_is_worth_four_pages(entities: int, page_size: int, most: int, slices: int) -> None:
    assert slice_count(entities, page_size, most) == slices


def test_the_places_of_cuts_part_the_entities_evenly() -> None:
    assert slice_boundaries(1000, 1) == ()
    assert slice_boundaries(1000, 3) == (333, 666)


def test_slices_share_their_bounds_and_cover_all_times() -> None:
    found = sliced(EntityQuery("/a", types=("car",)), (FIRST, SECOND))
    assert [(query.since, query.until) for query in found] == [(None, FIRST), (FIRST, SECOND), (SECOND, None)]
    assert {query.types for query in found} == {("car",)}


@pytest.mark.parametrize(
    "cuts",
    [(FIRST, FIRST), (SECOND, FIRST), (None, FIRST, None), ("yesterday", FIRST), (FIRST, "2026-01-01T01:00:01+01:00")],
)
def test_a_cut_that_is_no_later_time_cuts_nothing(cuts: tuple[str | None, ...]) -> None:
    assert len(sliced(EntityQuery("/a"), cuts)) == 2


def test_a_cut_finer_than_milliseconds_is_cut_to_them() -> None:
    first, second = sliced(EntityQuery("/a"), ["2026-01-01T00:00:01.0009999Z"])
    assert first.until == second.since == FIRST


def test_a_slice_asks_for_its_range_in_one_condition() -> None:
    query = EntityQuery("/a", q="speed>20", until=SECOND)
    asked = [query.page_parameters(since=since, offset=0, limit=1).get("q") for since in (None, FIRST)]
    assert asked == ["speed>20", f"speed>20;dateCreated=={FIRST}..{SECOND}"]
