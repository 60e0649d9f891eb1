"""Paging through the entities that have a history: by places as elsewhere, or by anchors as Mintaka does.

What happened in the past doesn't change, so pages by places don't shift, unless history itself is taken away; that
shows in the counts.

No single answer ends the pages: a broker that lost its database for a moment answers with none, or with fewer, and
counts them. Behind a page that seems to be the last one the broker is asked again, and has to say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from contexture.errors import RetriableError
from contexture.ngsi.linked_data.flavour import Flavour

PAGE_SIZE = 100
"""What every broker grants (Stellio's largest)."""

_LONGEST_NUMBER = 18  # digits
_NEXT_PAGE = "next-page"
_COUNT = "ngsild-results-count"


@dataclass(slots=True)
class TemporalPaging:
    """Where a reader is in the entities of one answer after the other.

    Attributes:
        flavour: Mintaka, which reads Orion-LD's history, has anchors (`pageAnchor`, `Next-Page`); others `offset`.
        over: whether nothing is left to be asked.
    """

    flavour: Flavour
    over: bool = False
    _offset: int = 0
    _anchor: str = ""
    _total: int | None = None
    _met: set[str] = field(default_factory=set)
    _seems_over: bool = False

    def parameters(self) -> dict[str, str]:
        """Asks for the next page."""
        if self._anchor or self.flavour == "orion-ld":
            return {"pageSize": str(PAGE_SIZE)} | ({"pageAnchor": self._anchor} if self._anchor else {})
        return {"limit": str(PAGE_SIZE), "offset": str(self._offset), "count": "true"}

    def advance(self, ids: Iterable[str], headers: Mapping[str, str]) -> None:
        """Goes behind a page.

        Raises:
            RetriableError: history was taken away meanwhile, or the broker does not go on to another page.
        """
        page = tuple(ids)
        if page and self._met.issuperset(page) and not self._is_asked_again():
            # It would be asked for until the deadline.
            raise _same_again()
        self._met.update(page)
        self._offset += len(page)
        following = headers.get(_NEXT_PAGE, "")
        total = _number(headers.get(_COUNT, ""))
        if self._total is not None and total != self._total:
            raise _changed()
        self._total = total
        ends = not page or not self._is_more(following)
        self.over = ends and self._seems_over
        self._seems_over = ends
        if not ends or self.flavour != "orion-ld":
            # The last page of anchors is asked for again: nothing leads behind it.
            self._anchor = following
        if self.over and total is not None and len(self._met) < total:
            raise _changed()

    def _is_asked_again(self) -> bool:
        return self._seems_over and self.flavour == "orion-ld"

    def _is_more(self, following: str) -> bool:
        if following or self.flavour == "orion-ld":
            return bool(following)
        return self._total is None or self._offset < self._total


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else None


def _same_again() -> RetriableError:
    return RetriableError(
        "the broker answers another page of its history with entities that it has answered already",
        next_step="nothing, if much was written meanwhile: the run is retried. If it stays so, the broker takes no "
        "notice of `offset`: backfill an interval that is archived",
    )


def _changed() -> RetriableError:
    return RetriableError(
        "the broker's history changed while it was read",
        next_step="nothing; the run is retried. If it stays so, compare what the broker counts with what it shows",
    )
