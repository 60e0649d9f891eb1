"""One row of the ledger: how far one shard of one outbox got."""

from __future__ import annotations

import builtins
import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from contexture.errors import DefectError
from contexture.storage.documents import check_format

FORMAT: Final = 1
"""Raised when an entry changes in a way that an earlier Contexture could not go on from."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What the last committed transaction of a shard left behind.

    Attributes:
        outbox: id of the outbox.
        sequence: its place in the publication's order.
        position: the next position to send.
        records, bytes: what that transaction held (bytes of keys and values, before compression).
        transaction: its number in the outbox; -1 when nothing was sent (a claim).
        source_transaction: the registry's own transaction it carried, if any.
        at: when it was about to be committed, with a time zone.
        source_deletions: whether that was the deletions of the registry's transaction, which follow its additions and
            modifications.
        dead_letters: positions of this outbox's shard whose records went to the dead-letter topic, with this
            transaction or an earlier one.
        format: of the entry.
        since: when the sending of the outbox's shard began, with a time zone; None in rows of earlier versions, and in
            those that no sending wrote.
    """

    outbox: str
    sequence: int
    position: int
    records: int
    bytes: int
    transaction: int
    source_transaction: int | None
    at: datetime
    source_deletions: bool = False
    dead_letters: tuple[int, ...] = ()
    format: int = FORMAT
    since: datetime | None = None

    @property
    def source_place(self) -> tuple[int, bool] | None:
        """Where it stands in the registry's order: greater is later; None where the registry gave no number."""
        return None if self.source_transaction is None else (self.source_transaction, self.source_deletions)

    def to_json(self) -> builtins.bytes:
        """The value of the ledger's record."""
        members = {**asdict(self), "at": self.at.isoformat()}
        if not self.dead_letters:
            del members["dead_letters"]
        if self.since is None:
            del members["since"]
        else:
            members["since"] = self.since.isoformat()
        return json.dumps(members, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, value: builtins.bytes) -> LedgerEntry:
        """The entry that `to_json` wrote; members added by later versions are passed over.

        Members that earlier versions did not write are read as their defaults.

        Raises:
            DefectError: the value is not a ledger entry.
            UnknownFormatError: another version of Contexture wrote it.
        """
        try:
            check_format("a row of the ledger", msgspec.json.decode(value, type=_Said).format, FORMAT)
            entry = msgspec.json.decode(value, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            # `from None`: the decoder's words may quote what a stranger wrote.
            raise _no_entry(type(problem).__name__) from None
        if entry.at.tzinfo is None or (entry.since is not None and entry.since.tzinfo is None):
            raise _no_entry("a time without its zone")
        return entry


class _Said(msgspec.Struct):
    """What a row says of its format."""

    format: Any = None


def _no_entry(why: str) -> DefectError:
    return DefectError(
        f"a record of the ledger is not an entry of it ({why})",
        next_step="find out who else writes to contexture.ledger.*, and abandon the outbox if in doubt",
    )
