"""What the row rules quarantined: lists without any content by outbox and rule, and on request one entity whole."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError, DefectError
from contexture.operations.status.sources import Paging, Sources
from contexture.storage.outboxes import Outboxes, OutboxStatus
from contexture.storage.publication_store import PublicationStore

SAMPLES: Final = 5
MOST_FOUND: Final = 50
"""Of each rule, where a filter chooses."""
SEARCHED: Final = 200
"""The most runs that are searched with a filter."""
MOST_CHARACTERS: Final = 20_000
"""Of the content that is shown."""
_PAGE_SIZE = 10
_READERS = 8
_IDENTITY = ("path", "id", "type")
_NAMED = re.compile(r"'([^']+)'")
"""Names of attributes, as messages of rules quote them."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """What one rule quarantined of an outbox's run.

    Attributes:
        rows: how often it is broken by what is still quarantined.
        samples: identities of some of it: service path, id and type, or a structure's URN; with the rule's message.
        ordinals: of the events that the samples are of.
    """

    rule: str
    severity: str
    rows: int
    samples: tuple[tuple[str, str], ...]
    ordinals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QuarantinedByRule:
    """What one run quarantined; `events` are those that were not tried again."""

    outbox: str
    sequence: int
    status: str
    prepared_at: datetime
    events: int
    rules: tuple[BrokenRule, ...]


@dataclass(frozen=True, slots=True)
class Quarantines:
    """A page of what runs quarantined, the latest first.

    Attributes:
        is_searched_in_part: whether there are more runs than a filter searches.
    """

    lines: tuple[QuarantinedByRule, ...]
    paging: Paging
    is_searched_in_part: bool = False


@dataclass(frozen=True, slots=True)
class QuarantineSearch:
    """A choice of quarantined rows; a row is found if all of it is true.

    Attributes:
        rule: the name of the rule.
        text: a part of the identity or of the message, in any case.
    """

    rule: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.rule or self.text)

    def chosen(self, table: Any) -> Any:
        """Returns the rows of a table that are chosen."""
        if self.rule:
            table = table.filter(pc.equal(table.column("rule"), self.rule))
        if self.text:
            columns = (table.column(name).cast(pa.string()) for name in (*_IDENTITY, "message"))
            found = [pc.match_substring(pc.fill_null(each, ""), self.text, ignore_case=True) for each in columns]
            table = table.filter(reduce(pc.or_, found))
        return table


EVERYTHING: Final = QuarantineSearch()


def quarantines(sources: Sources, name: str, *, page: int, which: QuarantineSearch = EVERYTHING) -> Quarantines:
    """Returns what the runs of a publication quarantined, as far as it is stored; with a filter, what that chooses.

    Raises:
        RetriableError: the storage did not answer.
    """
    store = sources.home.publication(name)
    outboxes = store.quarantined_outboxes()
    with ThreadPoolExecutor(_READERS) as readers:
        sequences = list(readers.map(lambda each: _known_sequence(store, each), outboxes))
    known = sorted(((at, each) for at, each in zip(sequences, outboxes, strict=True) if at is not None), reverse=True)
    if which:
        with ThreadPoolExecutor(_READERS) as readers:
            searched = readers.map(lambda each: _quarantine_of(store, each[1], which), known[:SEARCHED])
            found = [each for each in searched if each is not None and each.events]
        paging = Paging.of(page, len(found), _PAGE_SIZE)
        return Quarantines(tuple(found[paging.offset : paging.end]), paging, len(known) > SEARCHED)
    paging = Paging.of(page, len(known), _PAGE_SIZE)
    shown = (_quarantine_of(store, each, which) for _, each in known[paging.offset : paging.end])
    return Quarantines(tuple(each for each in shown if each), paging)


def _quarantine_of(store: PublicationStore, outbox: str, which: QuarantineSearch) -> QuarantinedByRule | None:
    status = _status(store.outboxes, outbox)
    return read_quarantine(store, status, which) if status else None


def read_quarantine(
    store: PublicationStore, status: OutboxStatus, which: QuarantineSearch = EVERYTHING
) -> QuarantinedByRule:
    """Returns what one outbox's run quarantined; with a filter, what that chooses.

    Raises:
        RetriableError: the storage did not answer.
    """
    quarantine = store.quarantine(status.outbox)
    retried = pa.array(list(quarantine.retried()), pa.int64())
    columns = ["ordinal", *_IDENTITY, "rule", "severity", "message"]
    tables = [quarantine.rows(part, columns) for part in quarantine.parts]
    parts = [each.filter(pc.invert(pc.is_in(each.column("ordinal"), value_set=retried))) for each in tables]
    table = which.chosen(pa.concat_tables(parts)) if parts else None
    return QuarantinedByRule(
        outbox=status.outbox,
        sequence=status.sequence,
        status=status.status,
        prepared_at=status.steps[0].at,
        events=0 if table is None else pc.count_distinct(table.column("ordinal")).as_py(),
        rules=() if table is None else _rules(table, MOST_FOUND if which else SAMPLES),
    )


def _rules(table: Any, most: int) -> tuple[BrokenRule, ...]:
    counts = table.group_by(["rule", "severity"]).aggregate([("ordinal", "count")]).to_pylist()
    ordered = sorted(counts, key=lambda each: (-each["ordinal_count"], each["rule"]))
    return tuple(_rule(table, each["rule"], each["severity"], each["ordinal_count"], most) for each in ordered)


def _rule(table: Any, rule: str, severity: str, rows: int, most: int) -> BrokenRule:
    wanted = pc.and_(pc.equal(table.column("rule"), rule), pc.equal(table.column("severity"), severity))
    samples = table.filter(wanted).slice(0, most).to_pylist()
    named = tuple((_identity(row), row["message"]) for row in samples)
    return BrokenRule(rule, severity, rows, named, tuple(row["ordinal"] for row in samples))


@dataclass(frozen=True, slots=True)
class RefusedEntity:
    """One quarantined entity or structure with its content, which may be personal data.

    Attributes:
        violations: rule, severity and message.
        values: of attributes that the messages name, by name.
        content: what the source sent, of at most `MOST_CHARACTERS` characters.
        is_cut: whether there is more of it.
    """

    outbox: str
    identity: str
    received_at: datetime
    violations: tuple[tuple[str, str, str], ...]
    values: tuple[tuple[str, str], ...]
    content: str
    is_cut: bool


def find_refused_entity(store: PublicationStore, outbox: str, ordinal: int) -> RefusedEntity | None:
    """Returns one quarantined entity of an outbox's run; None where it is not stored.

    Raises:
        RetriableError: the storage did not respond.
    """
    quarantine = store.quarantine(outbox)
    rows = [row for part in quarantine.parts for row in quarantine.of_event(part, ordinal).to_pylist()]
    if not rows:
        return None
    document = _document(rows[0]["body"])
    messages = [row["message"] for row in rows]
    named = dict.fromkeys(name for message in messages for name in _NAMED.findall(message))
    values = [(name, _text(document[name])) for name in named if isinstance(document, dict) and name in document]
    content = _text(document)
    return RefusedEntity(
        outbox=outbox,
        identity=_identity(rows[0]),
        received_at=rows[0]["received_at"],
        violations=tuple((row["rule"], row["severity"], row["message"]) for row in rows),
        values=tuple((name, value[:MOST_CHARACTERS]) for name, value in values),
        content=content[:MOST_CHARACTERS],
        is_cut=len(content) > MOST_CHARACTERS,
    )


def _document(body: bytes | None) -> Any:
    """Returns the JSON document of a body; of another format its text."""
    try:
        return json.loads(body or b"null")
    except ValueError:
        return (body or b"").decode(errors="replace")


def _text(document: Any) -> str:
    if document is None:
        return ""
    return document if isinstance(document, str) else json.dumps(document, indent=2, ensure_ascii=False)


def _identity(row: dict[str, Any]) -> str:
    # A structure has no path, but a URN for its id.
    names: Sequence[str] = ("id", "type") if row["path"] == "" else _IDENTITY
    return " ".join(str(row[name] or "?") for name in names)


def _known_sequence(store: PublicationStore, outbox: str) -> int | None:
    try:
        return _sequence(store, outbox)
    except (ConfigurationError, DefectError):
        return None


@lru_cache(maxsize=100_000)
def _sequence(store: PublicationStore, outbox: str) -> int:
    # It never changes, and an archive of a month has thousands.
    return store.outboxes.status(outbox).sequence


def _status(outboxes: Outboxes, outbox: str) -> OutboxStatus | None:
    try:
        return outboxes.status(outbox)
    except (ConfigurationError, DefectError):
        return None
