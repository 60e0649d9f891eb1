"""Cutting one walk into several that can be read side by side, along the time it goes by.

A cut is a time, and any time will do: the slices cover all times there are, whoever chose it. So a cut may come from a
look at some place of an order that changes meanwhile, and be wrong; then slices differ in size, and nothing is missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from contexture.ngsi.paging import broker_text
from contexture.ngsi.query import EntityQuery
from contexture.ngsi.sighting import moment

PAGES_WORTH_A_SLICE = 4
"""A slice costs a look at the broker and a page that is not full."""


def slice_count(entities: int, page_size: int, most: int) -> int:
    """Into how many slices a walk that meets so many entities is worth cutting, 1 to `most`."""
    return max(1, min(most, entities // (PAGES_WORTH_A_SLICE * page_size)))


def cut_places(entities: int, slices: int) -> tuple[int, ...]:
    """The places in a walk's order at which slices of one size begin; the first needs none."""
    return tuple(entities * number // slices for number in range(1, slices))


def sliced(query: EntityQuery, cuts: Iterable[str | None]) -> tuple[EntityQuery, ...]:
    """The slices of a walk, in its order; together they meet what it would.

    Args:
        query: a walk from the first entity to the last.
        cuts: times as the broker shows them; what is no time, or not later than the one before, cuts nothing.
    """
    bounds = (None, *_rising(cuts), None)
    return tuple(replace(query, since=since, until=until) for since, until in pairwise(bounds))


def _rising(cuts: Iterable[str | None]) -> Iterable[str]:
    last: datetime | None = None
    for cut in cuts:
        time = moment(cut)
        if time is not None and (last is None or time > last):
            last = time
            yield broker_text(time)
