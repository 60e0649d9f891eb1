"""Walking through the entities of one type by page numbers, without missing one.

NGSI-LD promises no order and its times can't be a cursor everywhere. What makes page numbers safe:

- pages overlap. When the first row of a page is not one of those that were met without a gap from the first row on,
  something ahead of it went away and others took its place: the walk steps back until it meets such a row, and lets
  pages overlap by more, so that it gets on though entities go away between any two of them;
- rows have to rise by id, or by time of creation and id, within a page and from page to page: an order that no write
  changes. A walk in that order ends well when it has met as many entities as the broker counted in its first two
  answers. From a broker without an order, which may show other rows on other pages, as many have to come as it ever
  counted;
- where the broker freezes the ids (EntityMap), pages are taken in its order. One with fewer rows than it has room for,
  or with none that is new, is asked for again: entities were deleted, or the answer was not whole;
- no single answer ends a walk: a page may be cut short, and its count may be wrong. The walk goes on from the last row
  it was shown, and ends where the next page is the last one too and brings nothing new, or after the third such page.

A walk that ends otherwise is repeated with another page size. One that ends so the third time is over, and
`is_short`: what it did not meet may be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from contexture.ngsi.sighting import Sighting, moment

MAX_WALKS = 3
_EMPTY_PAGES = 2
_MOST_LAST_PAGES = 2
# Of two answers in succession one is true.
_FIRST_ANSWERS = 2
# Where one entity comes with every page, the last page is never the last one for long.
_MOST_LAST_PAGES_APART = 10


@dataclass(frozen=True, slots=True)
class LinkedDataPage:
    """What the walk looks at of one answer: the rows, and how many there are in all."""

    rows: Sequence[Sighting]
    total: int
    entity_map: str = ""


class OffsetWalk:
    """A place in a walk through one type.

    Attributes:
        offset, limit: of the page to ask for next; the broker chooses the size where limit is None.
        entity_map: the frozen list the walk goes along, "" where there is none.
        over: whether the walk has come to its end.
        is_short: whether it ended without having met what the broker counts.
    """

    def __init__(self, limit: int | None) -> None:
        self.offset = 0
        self.limit = limit
        self.entity_map = ""
        self.over = self.is_short = False
        self._seen: dict[str, str | None] = {}
        self._met_without_gap: set[str] = set()
        self._overlap = 1
        self._walks = 1
        self._begin()

    def _begin(self) -> None:
        self._rises_by_id = self._rises_by_creation = True
        self._last: Sighting | None = None
        self._first_total = self._greatest_total = self._first_answers = 0
        self._empty_pages = 0
        self._last_pages = self._all_last_pages = 0
        self._asked_again_at: int | None = None

    def advance(self, page: LinkedDataPage) -> tuple[int, ...]:
        """Takes in the page that was asked for here; returns the indices of rows not seen before."""
        if self.entity_map and page.entity_map != self.entity_map:
            # The list expired and the broker made another one: its pages are not those of the first.
            self._restart()
            return self._sift(page.rows)
        self.entity_map = page.entity_map
        fresh = self._sift(page.rows)
        if self._is_beyond(page):
            self._step_back(page)
            return fresh
        self._learn_size(page)
        self._learn_order(page.rows)
        if self._first_answers < _FIRST_ANSWERS:
            self._first_answers += 1
            self._first_total = max(self._first_total, page.total)
        self._greatest_total = max(self._greatest_total, page.total)
        known = len(self._met_without_gap)
        self._met_without_gap.update(row.id for row in page.rows if row.id is not None)
        if self._is_doubtful(page, brings_nothing=len(self._met_without_gap) == known):
            self._asked_again_at = self.offset
            return fresh
        ends = self._ends(page)
        self._last_pages = self._last_pages + 1 if ends else 0
        self._all_last_pages += ends
        brings_nothing = len(self._met_without_gap) == known
        is_chasing = self._last_pages > _MOST_LAST_PAGES or self._all_last_pages > _MOST_LAST_PAGES_APART
        if is_chasing or (self._last_pages > 1 and brings_nothing):
            self._finish(page)
        else:
            # The last row alone shows whether anything follows it.
            self.offset += max(0, len(page.rows) - 1) if ends else self._stride(page)
        return fresh

    def _is_doubtful(self, page: LinkedDataPage, *, brings_nothing: bool) -> bool:
        """Whether a page of a frozen list, asked for once, may have rows that it does not show."""
        if not self.entity_map or self._asked_again_at == self.offset:
            return False
        room = min(self.limit or len(page.rows), page.total - self.offset)
        return len(page.rows) < room or (brings_nothing and not self._last_pages)

    def _is_beyond(self, page: LinkedDataPage) -> bool:
        """Whether rows that were not met may lie between those met without a gap and this page."""
        if self.offset == 0 or self.entity_map:
            return False
        if not page.rows:
            return page.total > 0
        return page.rows[0].id is not None and page.rows[0].id not in self._met_without_gap

    def _step_back(self, page: LinkedDataPage) -> None:
        """Goes to an earlier page; this one's rows say nothing about where the walk is."""
        if not page.rows:
            self._empty_pages += 1
            if self._empty_pages > _EMPTY_PAGES:
                self._restart()
                return
        limit = self.limit or 1
        self.offset = max(0, min(self.offset, page.total) - limit)
        self._overlap = min(max(1, limit // 2), 4 * self._overlap)

    def _learn_size(self, page: LinkedDataPage) -> None:
        """A full page tells the size that the broker really gives."""
        rows = len(page.rows)
        if rows and self.offset == 0 and rows < page.total and (self.limit is None or rows < self.limit):
            self.limit = rows

    def _learn_order(self, rows: Sequence[Sighting]) -> None:
        """Rows rise within the page, and those not met before follow the last row of the pages before."""
        fresh = [row for row in rows if row.id not in self._met_without_gap]
        across = [self._last, *fresh] if self._last is not None else fresh
        for one, other in (*pairwise(rows), *pairwise(across)):
            self._rises_by_id &= (one.id or "") < (other.id or "")
            self._rises_by_creation &= _was_created_before(one, other)
        self._last = fresh[-1] if fresh else self._last

    def _sift(self, rows: Sequence[Sighting]) -> tuple[int, ...]:
        fresh = []
        for index, row in enumerate(rows):
            if row.id is None or row.id not in self._seen or self._seen[row.id] != row.modified:
                fresh.append(index)
            if row.id is not None:
                self._seen[row.id] = row.modified
        return tuple(fresh)

    def _ends(self, page: LinkedDataPage) -> bool:
        if self.entity_map:
            return self.offset + self._stride(page) >= page.total
        return self.offset + len(page.rows) >= page.total or not page.rows

    def _stride(self, page: LinkedDataPage) -> int:
        if self.entity_map:
            # What vanished from a frozen list leaves a gap in its page.
            return self.limit or max(1, len(page.rows))
        return max(1, len(page.rows) - self._overlap)

    def _finish(self, page: LinkedDataPage) -> None:
        is_ordered = self._rises_by_id or self._rises_by_creation
        counted = self._first_total if is_ordered else self._greatest_total
        if len(self._met_without_gap) >= counted or any(row.id is None for row in page.rows):
            self.over = True
        else:
            self._restart()

    def _restart(self) -> None:
        if self._walks >= MAX_WALKS:
            self.over = self.is_short = True
            return
        self._walks += 1
        self.offset, self.entity_map = 0, ""
        self._met_without_gap.clear()
        self._begin()
        self.limit = max(2, (self.limit or 2) * 2 // 3)


def _was_created_before(one: Sighting, other: Sighting) -> bool:
    first, second = moment(one.created), moment(other.created)
    if first is None or second is None or one.id is None or other.id is None:
        return False
    return (first, one.id) < (second, other.id)
