"""A registry's log: rows of its search, joined with what its feed says they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from contexture.sdmx.registries.errors import IncompleteReplyError, LogResetError
from contexture.sdmx.registries.feed import Told
from contexture.sdmx.registries.port import Log, Period, RegistryTransaction
from contexture.sdmx.registries.transport import Fetched

_SETTLES = timedelta(minutes=5)
_REGISTRATION = "registration"


@dataclass(frozen=True, slots=True)
class LogRow:
    """A transaction as the search tells it."""

    id: int
    at: datetime
    action: str = ""
    type: str = ""

    @property
    def is_of_registrations(self) -> bool:
        """Whether it is about data registrations, and no structure."""
        return _REGISTRATION in self.type.lower()


def rows_in(body: bytes, fetched: Fetched) -> tuple[LogRow, ...]:
    """The rows of an answer, each id once.

    Raises:
        IncompleteReplyError: it is something else.
    """
    try:
        given = msgspec.json.decode(body, type=list[dict[str, object]])
        rows = {row.id: row for row in map(_row, given)}
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
        LookupError,
        ValueError,
        TypeError,
        OverflowError,
        OSError,  # a time that the machine's calendar does not hold
    ) as error:
        raise _not_understood("transactions", fetched, error) from None
    return tuple(rows.values())


def urns_in(body: bytes, fetched: Fetched) -> tuple[str, ...]:
    """The URNs of an answer: texts, or rows with a URN.

    Raises:
        IncompleteReplyError: it is something else.
    """
    try:
        given = msgspec.json.decode(body, type=list[str | dict[str, object]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_understood("URNs", fetched, error) from None
    named = (each if isinstance(each, str) else str(_lower(each).get("urn", "")) for each in given)
    return tuple(dict.fromkeys(urn for urn in named if urn))


def newest(rows: Sequence[LogRow], after: int | None, address: str) -> int:
    """The last id there is.

    Raises:
        IncompleteReplyError: the log is empty, and was not.
        LogResetError: it ends before `after`.
    """
    last = max((row.id for row in rows), default=0)
    if not rows and after:
        raise IncompleteReplyError(
            f"the log of the structure registry at {address} is empty, and was not before",
            next_step="look into the registry's log and at its database; the run is retried",
        )
    if after is not None and last < after:
        raise LogResetError(
            f"the log of the structure registry at {address} ends with transaction {last}, and {after} was told of it",
            next_step="if the registry was set up anew or restored, run the publication once in mode full",
        )
    return last


def joined(rows: Sequence[LogRow], told: Mapping[int, Told], after: int, *, now: datetime, is_whole: bool) -> Log:
    """What happened after a transaction, and up to which one not all of it is told.

    Args:
        rows: of the search.
        told: what the feed says, by id.
        after: the last transaction known.
        now: by the registry's clock.
        is_whole: whether the search reached back to `after`.
    """
    new = sorted((row for row in rows if row.id > after), key=lambda row: row.id)
    last = max(row.id for row in new)
    settled = _without_the_youngest(new, told, now)
    untold = [row.id for row in settled if row.id not in told and not row.is_of_registrations]
    if not is_whole:
        # What is missing is older than what was answered.
        untold.append(min(row.id for row in new) - 1)
    gap_until = max((each for each in untold if each > after), default=None)
    transactions = tuple(
        _transaction(row, told.get(row.id, Told())) for row in settled if gap_until is None or row.id > gap_until
    )
    return Log(last, transactions, gap_until)


def period(rows: Sequence[LogRow], start: datetime, end: datetime) -> Period:
    """Which of the rows lie in a stretch of time.

    Args:
        rows: the newest ones of the search, without holes.
        start, end: of the stretch, its end excluded.
    """
    inside = sorted(row.id for row in rows if start <= row.at < end and not row.is_of_registrations)
    before = max((row.id for row in rows if row.at < start), default=None)
    # Ids are counted from 1: with that one, nothing older is left.
    is_whole = before is not None or not rows or min(row.id for row in rows) <= 1
    if before is None:
        before = min((row.id for row in rows), default=1) - 1
    return Period(before, tuple(inside), is_whole)


def _without_the_youngest(rows: Sequence[LogRow], told: Mapping[int, Told], now: datetime) -> Sequence[LogRow]:
    """The rows without the last ones, where the feed may not have come to tell them yet."""
    end = len(rows)
    while end and rows[end - 1].id not in told and now - rows[end - 1].at < _SETTLES:
        end -= 1
    return rows[:end]


def _transaction(row: LogRow, told: Told) -> RegistryTransaction:
    return RegistryTransaction(row.id, row.at, row.action, told.changed, told.deleted, told.added)


def _row(given: Mapping[str, object]) -> LogRow:
    row = _lower(given)
    at = datetime.fromtimestamp(int(str(row["date"])) / 1000, UTC)
    return LogRow(int(str(row["id"])), at, str(row.get("action", "")), str(row.get("type", "")))


def _lower(row: Mapping[str, object]) -> dict[str, object]:
    return {name.lower(): value for name, value in row.items()}


def _not_understood(what: str, fetched: Fetched, error: Exception) -> IncompleteReplyError:
    return IncompleteReplyError(
        f"the structure registry's answer is no list of {what} ({fetched.media_type[:40]}; {type(error).__name__})",
        next_step="look at what stands between it and us; the run is retried",
    )
