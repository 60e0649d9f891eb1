"""A registry's log: rows of its search, joined with the items of its feed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain

import msgspec
from lxml import etree

from contexture.sources.http.errors import IncompleteReplyError
from contexture.sources.sdmx.registry.interface import Log, LogPeriod, LogResetError, RegistryTransaction
from contexture.sources.sdmx.registry.transport import DownloadedFile
from contexture.sources.sdmx.urn import Urn, is_registration

_NUMBER = re.compile(r"(?<!\d)\d{1,18}(?!\d)", re.ASCII)
_NUMBER_OF_TRANSACTION = re.compile(r"\btransaction\b\D{0,20}?(?<!\d)(\d{1,18})(?!\d)", re.ASCII | re.IGNORECASE)
_LISTS = ("added", "modified", "deleted")


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """URNs of the maintainable artefacts that one transaction changed (added or modified) and deleted.

    `added`: those among the changed that were not there before it.
    """

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def parse_feed(body: bytes) -> Mapping[int, FeedEntry]:
    """Returns what a feed contains, by the id of the transaction.

    The items of one transaction are taken together. A transaction of which an item cannot be read is left out as a
    whole, as if the feed did not contain it; so is an item whose transaction is not known.

    Raises:
        IncompleteReplyError: it is no whole feed.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _no_feed() from error
    if root.getroottree().docinfo.internalDTD is not None or _local(root) not in {"rss", "feed", "RDF"}:
        raise _no_feed()
    found: dict[int, FeedEntry] = {}
    unreadable: set[int] = set()
    for item in root.iter():
        if _local(item) not in {"item", "entry"}:
            continue
        texts = [(_local(child).lower(), "".join(child.itertext())) for child in item]
        number = _number(" ".join(text for name, text in texts if name == "title"))
        if number is None:
            continue
        changes = _changes(texts)
        if changes is None:
            unreadable.add(number)
        else:
            found[number] = _merge(found.get(number, FeedEntry()), changes)
    return {number: each for number, each in found.items() if number not in unreadable}


def _number(title: str) -> int | None:
    """Returns the transaction that a title names: the number after that word, or the only one that there is.

    >>> _number("Transaction 13 - 2026"), _number("Structures 13"), _number("Structures 13 - 2026")
    (13, 13, None)
    """
    named = _NUMBER_OF_TRANSACTION.search(title)
    numbers = [named[1]] if named else _NUMBER.findall(title)
    return int(numbers[0]) if len(numbers) == 1 else None


def _changes(texts: Sequence[tuple[str, str]]) -> FeedEntry | None:
    """Returns what the lists of an item contain; None where it has none, or one cannot be read."""
    lists = {ending: [text for name, text in texts if name.endswith(ending)] for ending in _LISTS}
    if not any(lists.values()):
        return None
    try:
        added, modified, deleted = (_urns(";".join(lists[ending])) for ending in _LISTS)
    except ValueError:
        return None
    return FeedEntry(_each_once(added, modified), deleted, added)


def _merge(one: FeedEntry, other: FeedEntry) -> FeedEntry:
    return FeedEntry(
        _each_once(one.changed, other.changed),
        _each_once(one.deleted, other.deleted),
        _each_once(one.added, other.added),
    )


def _each_once(*lists: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain(*lists)))


def _urns(text: str) -> tuple[str, ...]:
    """Returns the artefacts in a list; an item counts as the artefact that holds it."""
    written = (each.strip() for each in text.split(";"))
    return tuple(dict.fromkeys(str(Urn.parse(each).maintainable()) for each in written if each))


def _local(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _no_feed() -> IncompleteReplyError:
    return IncompleteReplyError(
        "the response of the structure registry is not a feed of changes",
        next_step="check the proxies between it and Contexture, and that rss.xml is switched on; the run is retried",
    )


_SETTLES = timedelta(minutes=5)
_REGISTRATION = "registration"


@dataclass(frozen=True, slots=True)
class LogRow:
    """A transaction as the search returns it."""

    id: int
    at: datetime
    action: str = ""
    type: str = ""

    @property
    def is_of_registrations(self) -> bool:
        """Whether it is about data registrations, and no structure."""
        return _REGISTRATION in self.type.lower()


def rows_in(body: bytes, fetched: DownloadedFile) -> tuple[LogRow, ...]:
    """Returns the rows of a response, each id once.

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


def urns_in(body: bytes, fetched: DownloadedFile) -> tuple[str, ...]:
    """Returns the URNs of a response: texts, or rows with a URN.

    Raises:
        IncompleteReplyError: it is something else.
    """
    try:
        given = msgspec.json.decode(body, type=list[str | dict[str, object]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_understood("URNs", fetched, error) from None
    named = (each if isinstance(each, str) else str(_lower(each).get("urn", "")) for each in given)
    return tuple(dict.fromkeys(urn for urn in named if urn))


def newest_id(rows: Sequence[LogRow], after: int | None, address: str) -> int:
    """Returns the last id there is.

    Raises:
        IncompleteReplyError: the log is empty, and was not.
        LogResetError: it ends before `after`.
    """
    last = max((row.id for row in rows), default=0)
    if not rows and after:
        raise IncompleteReplyError(
            f"the log of the structure registry at {address} is empty, and was not before",
            next_step="check the registry's log and its database; the run is retried",
        )
    if after is not None and last < after:
        raise LogResetError(
            f"the log of the structure registry at {address} ends with transaction {last}, and {after} was read",
            next_step="if the registry was set up again or restored, run the publication once in mode full",
        )
    return last


def join_log(
    rows: Sequence[LogRow], feed: Mapping[int, FeedEntry], after: int, *, now: datetime, is_whole: bool
) -> Log:
    """Returns what happened after a transaction, and up to which one not all of it is known.

    Args:
        rows: of the search.
        feed: its entries, by id.
        after: the last transaction known.
        now: by the registry's clock.
        is_whole: whether the search reached back to `after`.
    """
    new = sorted((row for row in rows if row.id > after), key=lambda row: row.id)
    last = max(row.id for row in new)
    settled = _without_the_youngest(new, feed, now)
    unlisted = [row.id for row in settled if row.id not in feed and not row.is_of_registrations]
    if not is_whole:
        # What is missing is older than what was returned.
        unlisted.append(min(row.id for row in new) - 1)
    gap_until = max((each for each in unlisted if each > after), default=None)
    transactions = tuple(
        _transaction(row, feed.get(row.id)) for row in settled if gap_until is None or row.id > gap_until
    )
    return Log(last, transactions, gap_until)


def without_registrations(log: Log) -> Log:
    """Returns the log for a client that reads no data registrations: it contains none of them."""
    return replace(log, transactions=tuple(map(_of_structures, log.transactions)))


def _of_structures(transaction: RegistryTransaction) -> RegistryTransaction:
    changed, deleted, added = (
        tuple(urn for urn in urns if not is_registration(urn))
        for urns in (transaction.changed, transaction.deleted, transaction.added)
    )
    return replace(transaction, changed=changed, deleted=deleted, added=added, hides_registrations=False)


def period(rows: Sequence[LogRow], start: datetime, end: datetime, *, registrations: bool = False) -> LogPeriod:
    """Returns which of the newest rows of the search, without holes, are in an interval, its end excluded.

    Args:
        rows: of the search.
        start, end: of the interval.
        registrations: whether transactions of data registrations are among them.
    """
    inside = sorted(row.id for row in rows if start <= row.at < end and (registrations or not row.is_of_registrations))
    before = max((row.id for row in rows if row.at < start), default=None)
    # Ids are counted from 1: with that one, nothing older is left.
    is_whole = before is not None or not rows or min(row.id for row in rows) <= 1
    if before is None:
        before = min((row.id for row in rows), default=1) - 1
    return LogPeriod(before, tuple(inside), is_whole)


def _without_the_youngest(rows: Sequence[LogRow], feed: Mapping[int, FeedEntry], now: datetime) -> Sequence[LogRow]:
    """Returns the rows without the last ones, which the feed may not contain yet."""
    end = len(rows)
    while end and rows[end - 1].id not in feed and now - rows[end - 1].at < _SETTLES:
        end -= 1
    return rows[:end]


def _transaction(row: LogRow, entry: FeedEntry | None) -> RegistryTransaction:
    if entry is None:
        return RegistryTransaction(row.id, row.at, row.action, hides_registrations=row.is_of_registrations)
    return RegistryTransaction(row.id, row.at, row.action, entry.changed, entry.deleted, entry.added)


def _row(given: Mapping[str, object]) -> LogRow:
    row = _lower(given)
    at = datetime.fromtimestamp(int(str(row["date"])) / 1000, UTC)
    return LogRow(int(str(row["id"])), at, str(row.get("action", "")), str(row.get("type", "")))


def _lower(row: Mapping[str, object]) -> dict[str, object]:
    return {name.lower(): value for name, value in row.items()}


def _not_understood(what: str, fetched: DownloadedFile, error: Exception) -> IncompleteReplyError:
    return IncompleteReplyError(
        f"the response of the structure registry is not a list of {what} ({fetched.media_type[:40]}; "
        f"{type(error).__name__})",
        next_step="check the proxies between it and Contexture; the run is retried",
    )
