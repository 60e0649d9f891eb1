"""Walking through the entities of one type by page numbers, without missing one.

NGSI-LD promises no order and its times can't be a cursor everywhere. What makes page numbers safe:

- pages overlap by one row. When the first row of a page was not seen before, something ahead of it went away and
  others took its place: the walk steps back until it meets a row it knows;
- at the end there must be as many distinct ids as the broker counts, or the walk is repeated with another page size,
  for a broker without a stable order shows other rows on other pages;
- where the broker freezes the ids (EntityMap), pages are taken one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from contexture.errors import RetriableError
from contexture.ngsi.sighting import Sighting

MAX_WALKS = 3
_EMPTY_PAGES = 2


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
    """

    def __init__(self, limit: int | None) -> None:
        self.offset = 0
        self.limit = limit
        self.entity_map = ""
        self.over = False
        self._seen: dict[str, str | None] = {}
        self._walks = 1
        self._empty_pages = 0

    def advance(self, page: LinkedDataPage) -> tuple[int, ...]:
        """Takes in the page that was asked for here; returns the indices of rows not seen before.

        Raises:
            RetriableError: entities changed places again and again while they were read.
        """
        if self.entity_map and page.entity_map != self.entity_map:
            # The list expired and the broker made another one: its pages are not those of the first.
            self._restart("the broker gave up the list of entities that was read")
            return self._sift(page.rows)
        self.entity_map = page.entity_map
        shifted = self._shifted(page.rows)
        self._learn_size(page)
        fresh = self._sift(page.rows)
        if shifted:
            self.offset = max(0, self.offset - (self.limit or 1))
        elif self._ends(page):
            self._finish(page)
        else:
            self.offset += self._stride(page)
        return fresh

    def _shifted(self, rows: Sequence[Sighting]) -> bool:
        """Whether rows may have moved ahead of the page; an empty page says so only at first, or walks had no end."""
        if self.offset == 0 or self.entity_map:
            return False
        if not rows:
            self._empty_pages += 1
            return self._empty_pages <= _EMPTY_PAGES
        return rows[0].id is not None and rows[0].id not in self._seen

    def _learn_size(self, page: LinkedDataPage) -> None:
        """A full page tells the size that the broker really gives."""
        rows = len(page.rows)
        if rows and self.offset == 0 and rows < page.total and (self.limit is None or rows < self.limit):
            self.limit = rows

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
        return max(1, len(page.rows) - 1)

    def _finish(self, page: LinkedDataPage) -> None:
        if self.entity_map or len(self._seen) >= page.total or any(row.id is None for row in page.rows):
            self.over = True
        else:
            self._restart(f"{page.total} entities are counted, but pages show only {len(self._seen)}")

    def _restart(self, why: str) -> None:
        if self._walks >= MAX_WALKS:
            raise _restless(why)
        self._walks += 1
        self.offset, self.entity_map, self._empty_pages = 0, "", 0
        self.limit = max(2, (self.limit or 2) * 2 // 3)


def _restless(why: str) -> RetriableError:
    return RetriableError(why, next_step="let the run be retried, or read when less is written")
