"""Reading every entity of a list that changes at the same time: a cursor on a time instead of page numbers.

Requested is `field >= cursor` in order of (field, id, type), and the cursor moves to the last time of the page. What
makes that safe:

- rows at the cursor come again with the next page (`>=`, because a broker stores times finer than it shows them); such
  repeats are dropped here;
- where more than a page shares one millisecond, the offset steps instead. Pages then overlap by one row, and when that
  row is not there again, something before it was deleted: the group is read again from its start;
- a time is accepted only when it is not before the cursor and not ahead of the broker's own clock, and a new cursor
  needs two such rows, because a user attribute named like the broker's time may contain anything;
- a page that shows none of the rows at the cursor is accepted when the next response begins alike: they may have
  changed meanwhile, or the broker returned a page from further on;
- no single response ends a walk. A page that is not full may have been cut short, and a broker without its database
  returns none at all. So the walk continues from the last row it was shown, and ends where a second response shows
  nothing beyond that row. An empty page has to come twice.

A walk that ends at a time (one slice of several) requests the range in one condition, so that the broker, and no shown
time, decides what belongs to it. The next slice may read rows of exactly that time too, and also rows that a first
slice reads beyond its end: a first slice starts without any condition, to read what never had a time.

A cut is a time, and any time will do: the slices cover all times there are, however it was chosen. So a cut may be the
time at some place of an order that changes meanwhile, and be wrong; then slices differ in size, and nothing is missed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Protocol

from contexture.errors import RetriableError
from contexture.sources.ngsi.entity_head import EntityHead, moment
from contexture.sources.ngsi.query import EntityQuery, KeysetField

CLOCK_MARGIN = timedelta(seconds=5)
"""How far ahead of the broker's Date a time may be: that header is cut to seconds, and broker nodes differ a little."""

MAX_RESTARTS = 100
_MOST_SHORT_PAGES = 2
_VOUCHING_ROWS = 2
_SMALLEST_PAGE = 2  # so that pages can overlap by a row and still get on

_Key = tuple[str | None, str | None, str | None, str | None]


class CursorPage(Protocol):
    """What the cursor needs of one response."""

    @property
    def heads(self) -> Sequence[EntityHead]:
        """The rows in the broker's order."""

    @property
    def broker_time(self) -> datetime:
        """The broker's clock when it responded."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The indices of rows not seen before, and where the walk continues; None at its end."""

    fresh: tuple[int, ...]
    following: KeysetCursor | None


@dataclass(frozen=True, slots=True)
class KeysetCursor:
    """A place in a walk: `limit` rows from `offset` on, among those at or after `since`, up to `until`."""

    field: KeysetField
    since: str | None
    limit: int
    offset: int = 0
    expected: EntityHead | None = None
    restarts: int = 0
    until: str | None = None
    short_pages: int = 0
    began_with: _Key | None = None
    seen: Mapping[_Key, datetime | None] = dataclasses.field(default_factory=dict, repr=False)

    @classmethod
    def start(cls, query: EntityQuery) -> KeysetCursor:
        """Returns the first place of a query's walk."""
        return cls(query.field, query.since, max(_SMALLEST_PAGE, query.page_size), until=query.until)

    def parameters(self, query: EntityQuery) -> dict[str, str]:
        """Returns the URL parameters of the page at this place."""
        return query.page_parameters(since=self.since, offset=self.offset, limit=self.limit)

    def halved(self) -> KeysetCursor:
        """Returns the same place with pages half as large; the smallest page has two rows."""
        return replace(self, limit=max(_SMALLEST_PAGE, self.limit // 2))

    def advance(self, page: CursorPage) -> PageRequest:
        """Adds the page that was requested here.

        Raises:
            RetriableError: the order of entities with one and the same time changed again and again while they were
                read.
        """
        rows = page.heads
        fresh, read = self._sift(rows)
        if self.expected is not None and (not rows or rows[0].identity != self.expected.identity):
            again = self._next_restart()
            return PageRequest(fresh, replace(self, offset=0, expected=None, restarts=again, short_pages=0, seen=read))
        if self._is_out_of_touch(rows):
            return PageRequest((), replace(self, began_with=_keys(rows)[0], restarts=self._next_restart()))
        is_short = len(rows) < self.limit
        short_pages = self.short_pages + 1 if is_short else 0
        if short_pages > _MOST_SHORT_PAGES or (short_pages > 1 and not fresh):
            return PageRequest(fresh, None)
        following = self._following(rows, read, self._latest(page.broker_time))
        following = following and replace(following, short_pages=short_pages, began_with=None)
        return PageRequest(fresh, following)

    def _is_out_of_touch(self, rows: Sequence[EntityHead]) -> bool:
        """Whether a page begins beyond the cursor, where rows were read, and the response before it began otherwise."""
        first, here = moment(rows[0].time(self.field)) if rows else None, moment(self.since)
        if first is None or here is None or not self.seen or self.offset:
            return False
        return _cut(first) > here and _keys(rows)[0] != self.began_with

    def _following(
        self, rows: Sequence[EntityHead], read: Mapping[_Key, datetime | None], latest: datetime
    ) -> KeysetCursor | None:
        reached = self._reached(rows, latest)
        if reached is None:
            return replace(self, offset=self.offset + len(rows) - 1, expected=rows[-1], seen=read) if rows else self
        return None if self._ends_before(reached) else self._moved(reached, rows, read)

    def _latest(self, broker_time: datetime) -> datetime:
        """Returns the latest time that a row here can have."""
        latest, end = broker_time + CLOCK_MARGIN, moment(self.until)
        return latest if end is None or self.since is None else min(latest, end)

    def _ends_before(self, reached: datetime) -> bool:
        end = moment(self.until)
        return end is not None and reached > end

    def _sift(self, rows: Sequence[EntityHead]) -> tuple[tuple[int, ...], dict[_Key, datetime | None]]:
        read = dict(self.seen)
        fresh = []
        for index, (row, key) in enumerate(zip(rows, _keys(rows), strict=True)):
            if key not in read or (row.id is None and self.offset):
                fresh.append(index)
            read[key] = moment(row.time(self.field))
        return tuple(fresh), read

    def _next_restart(self) -> int:
        if self.restarts >= MAX_RESTARTS:
            raise RetriableError(
                f"entities with one and the same {self.field} changed places {MAX_RESTARTS} times while they were read",
                next_step=(
                    "wait for the retry of the run; if the error persists, set larger pages or read when less "
                    "is written"
                ),
            )
        return self.restarts + 1

    def _reached(self, rows: Sequence[EntityHead], latest: datetime) -> datetime | None:
        """Returns where the cursor may move to; None where the page is no reason to move."""
        here = moment(self.since)
        times = [moment(row.time(self.field)) for row in rows]
        believed = [time for time in times if time is not None and time <= latest and (here is None or time >= here)]
        reached = min(believed[-_VOUCHING_ROWS:], default=None)
        return reached if here is None or reached is None or _cut(reached) > here else None

    def _moved(
        self, reached: datetime, rows: Sequence[EntityHead], read: Mapping[_Key, datetime | None]
    ) -> KeysetCursor:
        last = set(_keys(rows))
        kept = {key: time for key, time in read.items() if key in last or (time is not None and time >= reached)}
        return KeysetCursor(self.field, broker_text(reached), self.limit, until=self.until, seen=kept)


def broker_text(time: datetime) -> str:
    """Returns a moment (UTC) as brokers write it: cut to milliseconds, never rounded up."""
    return f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _cut(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def _keys(rows: Sequence[EntityHead]) -> list[_Key]:
    """Returns a key of each row of a page; of rows without an id, their times and place among those sharing them."""
    nameless = Counter[_Key]()
    keys = list[_Key]()
    for row in rows:
        key: _Key = (*row.identity, row.modified)
        if row.id is None:
            nameless[key] += 1
            key = (row.path, f"{row.created} {nameless[key]}", None, row.modified)
        keys.append(key)
    return keys


PAGES_WORTH_A_SLICE = 4
"""A slice costs a request to the broker and a page that is not full."""


def slice_count(entities: int, page_size: int, most: int) -> int:
    """Returns into how many slices to cut a walk through so many entities, 1 to `most`."""
    return max(1, min(most, entities // (PAGES_WORTH_A_SLICE * page_size)))


def slice_boundaries(entities: int, slices: int) -> tuple[int, ...]:
    """Returns the places in a walk's order at which slices of one size begin; the first needs none."""
    return tuple(entities * number // slices for number in range(1, slices))


def sliced(query: EntityQuery, cuts: Iterable[str | None]) -> tuple[EntityQuery, ...]:
    """Returns the slices of a walk, in its order; together they read what it would.

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
