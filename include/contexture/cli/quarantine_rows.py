"""Reading quarantines, and showing them on a terminal without letting the data speak to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow.parquet as pq

from contexture.cli import home
from contexture.errors import ConfigurationError
from contexture.outbox.lifecycle import Outboxes

_SHOWN = ("path", "id", "type", "rule", "severity", "message")
_CHARACTERS = 200


@dataclass(slots=True)
class HeldBack:
    """Refused rows: how many by publication and rule, and the first ones."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    rows: list[dict[str, str | None]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        counts = [
            {"publication": publication, "rule": rule, "rows": number}
            for (publication, rule), number in sorted(self.counts.items())
        ]
        return {"counts": counts, "rows": asdict(self)["rows"]}

    def lines(self) -> Iterator[str]:
        """As lines of printable text."""
        if not self.counts:
            yield "nothing is held back in what is kept"
            return
        for (publication, rule), number in sorted(self.counts.items()):
            yield f"{publication}  {printable(rule)}  {number}"
        for row in self.rows:
            identity = " ".join(printable(row[name] or "?") for name in ("path", "id", "type"))
            yield f"{row['outbox'][:12] if row['outbox'] else '?'}  {identity}"
            yield f"  {printable(row['rule'] or '')} ({row['severity']}): {printable(row['message'] or '')}"
            if "body" in row:
                yield f"  {printable(row['body'] or '', limit=None)}"
        if sum(self.counts.values()) > len(self.rows):
            yield f"{len(self.rows)} of {sum(self.counts.values())} rows shown; --limit shows more"


def read(publication: str | None, outbox: str | None, rule: str | None, *, limit: int, bodies: bool) -> HeldBack:
    """The refused rows of the outboxes that are kept, the newest outbox first.

    Raises:
        ConfigurationError: there is no such publication or outbox.
    """
    held = HeldBack()
    for owner, name in _chosen(publication, outbox):
        for row in _rows(owner, name, bodies=bodies):
            if rule is not None and row["rule"] != rule:
                continue
            held.counts[owner.folder.publication, str(row["rule"])] += 1
            if len(held.rows) < limit:
                held.rows.append({"publication": owner.folder.publication, "outbox": name, **row})
    return held


def printable(text: str, limit: int | None = _CHARACTERS) -> str:
    """A text that does nothing to a terminal: escape and direction characters stand as their codes."""
    safe = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    return safe if limit is None or len(safe) <= limit else f"{safe[: limit - 1]}…"


def _chosen(publication: str | None, outbox: str | None) -> list[tuple[Outboxes, str]]:
    storage = home.open_home()
    if outbox is not None:
        found = home.find_outbox(storage, outbox)
        if publication not in {None, found.publication}:
            raise ConfigurationError(
                f"outbox {found.status.outbox} is one of {found.publication}, not of {publication}",
                next_step="leave the publication out",
            )
        return [(found.outboxes, found.status.outbox)]
    owners = home.outboxes(storage, publication)
    return [(owner, status.outbox) for owner in owners for status in reversed(owner.all())]


def _rows(owner: Outboxes, outbox: str, *, bodies: bool) -> Iterator[dict[str, str | None]]:
    folder, storage = owner.folder.quarantine(outbox), owner.storage
    columns = [*_SHOWN, "body"] if bodies else list(_SHOWN)
    for name in storage.files(folder, ".parquet"):
        relative = f"{folder}/{name}"
        with storage.translating(relative):
            table = pq.read_table(
                storage.path(relative), columns=columns, filesystem=storage.filesystem, partitioning=None
            )
        for row in table.to_pylist():
            if bodies:
                row["body"] = (row["body"] or b"").decode("utf-8", "replace")
            yield row
