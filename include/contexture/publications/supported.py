"""What the model knows but this version can't do yet: the one table of it.

Making something work deletes its row. A value in this table is refused, never ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contexture.publications.findings import Finding, Location

if TYPE_CHECKING:
    from contexture.publications.publication import Publication


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A key with values whose behaviour is still missing.

    Attributes:
        values: those that don't work yet; none: whatever isn't empty.
        today: what to write instead.
        member: where given, the values are those of this key in each item of a list.
    """

    section: str
    key: str
    values: tuple[object, ...]
    today: str
    member: str = ""

    def applies_to(self, value: object) -> bool:
        """Whether the value is one of those that don't work yet."""
        return value in self.values if self.values else bool(value)


UNSUPPORTED = (
    Unsupported(
        "source", "registrations", (True,), "leave it out: no document says by which key a registry tells them"
    ),
)


def not_yet_supported(publication: Publication) -> Iterator[Finding]:
    """A finding for every value of the publication that this version can't honour."""
    for row in UNSUPPORTED:
        for location, value in _values(publication, row):
            if row.applies_to(value):
                what = f"`{location[-1]}: {_shown(value)}`"
                yield Finding(location, f"not yet supported: {what}", row.today)


def _values(publication: Publication, row: Unsupported) -> Iterator[tuple[Location, object]]:
    value = getattr(getattr(publication, row.section), row.key)
    if not row.member:
        yield (row.section, row.key), value
        return
    for number, item in enumerate(value):
        yield (row.section, row.key, number, row.member), getattr(item, row.member)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else "[...]"
