"""Pages of long lists."""

from __future__ import annotations

from dataclasses import dataclass

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page of a list.

    Attributes:
        number: from 1.
        size: entries on a page.
        total: entries of the list.
    """

    number: int
    total: int
    size: int = PAGE_SIZE

    @classmethod
    def of(cls, asked: int, total: int, size: int = PAGE_SIZE) -> Paging:
        """The page that was asked for, or the nearest one there is."""
        last = max(1, -(-total // size))
        return cls(number=min(max(asked, 1), last), total=total, size=size)

    @property
    def pages(self) -> int:
        """How many pages there are: at least one."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """How many entries stand before the page."""
        return (self.number - 1) * self.size

    @property
    def end(self) -> int:
        """How many entries stand before the next page."""
        return min(self.offset + self.size, self.total)
