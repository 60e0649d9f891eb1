"""Which documents a publication has on storage, and of which format each of them is.

Parquet files say nothing of themselves: those of an outbox, a landing and a quarantine go by the manifest that stands
with them, those of state by `CURRENT`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from contexture.outbox.attempts import SendAttempts
from contexture.outbox.dead_letters import DeadLettered
from contexture.outbox.document import Versioned, refuse_later
from contexture.outbox.inbox_claim import Claim
from contexture.outbox.inbox_entry import FORMAT as INBOX_FORMAT
from contexture.outbox.inbox_entry import format_of
from contexture.outbox.inbox_files import inbox_folder
from contexture.outbox.known_topics import KnownTopics
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.ledger_seen import LedgerSeen, ShardBegun
from contexture.outbox.lifecycle import OutboxStatus
from contexture.outbox.manifest import LandingManifest, Manifest, Verdict
from contexture.outbox.state import StatePointer
from contexture.outbox.storage import Storage

_BEGINNING_BYTES = 8


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document: what people call it, and the class that reads it."""

    name: str
    document: type[Versioned]

    @property
    def current(self) -> int:
        """The format that is written today."""
        return self.document.FORMAT


STATE = Kind("state", StatePointer)
MANIFEST = Kind("outbox manifest", Manifest)
STATUS = Kind("outbox status", OutboxStatus)
ATTEMPTS = Kind("failed sends", SendAttempts)
CLAIM = Kind("taken notifications", Claim)
VERDICT = Kind("verdict", Verdict)
LANDING = Kind("landing manifest", LandingManifest)
LEDGER_SEEN = Kind("note of the ledger", LedgerSeen)
SHARD_BEGUN = Kind("note of a shard", ShardBegun)
KNOWN_TOPICS = Kind("note of the topics", KnownTopics)
DEAD_LETTERS = Kind("dead letters", DeadLettered)
INBOX = "inbox"


@dataclass(frozen=True, slots=True)
class Stored:
    """One document.

    Attributes:
        kind: what it is.
        path: where, below the home.
        found: its format; None where it says none.
    """

    kind: Kind
    path: str
    found: int | None

    @property
    def is_current(self) -> bool:
        """Whether it is as it would be written today."""
        return self.found == self.kind.current


def stored(storage: Storage, publication: str) -> Iterator[Stored]:
    """Every document of a publication that says its format, or should.

    Raises:
        LaterFormatError: one was written by a later Contexture.
        RetriableError: the storage did not answer.
    """
    for kind, path in _documents(storage, PublicationFolder(publication)):
        found = stored_format(storage, kind, path)
        if found is not None:
            yield found


def stored_format(storage: Storage, kind: Kind, path: str) -> Stored | None:
    """The format of one document; None where there is no such document, or none that can be read.

    Raises:
        LaterFormatError: it was written by a later Contexture.
    """
    try:
        read = json.loads(storage.read(path))
    except (FileNotFoundError, ValueError, RecursionError):
        # What is damaged is told by whoever needs it.
        return None
    if not isinstance(read, dict):
        return None
    found = read.get(kind.document.FORMAT_MEMBER)
    refuse_later(f"{kind.name} {path}", found, kind.current)
    return Stored(kind, path, found if isinstance(found, int) else None)


def check_inbox(storage: Storage, publication: str) -> int:
    """How many files wait in the inbox; all of them can be read.

    Raises:
        LaterFormatError: one was written by a later Contexture.
    """
    folder = inbox_folder(publication)
    names = storage.files(folder)
    for name in names:
        found = format_of(storage.beginning(f"{folder}/{name}", _BEGINNING_BYTES))
        refuse_later(f"inbox {folder}/{name}", found, INBOX_FORMAT)
    return len(names)


def pending_documents(storage: Storage, publication: str) -> Iterator[tuple[Kind, str]]:
    """The documents that the next run reads first: few, whatever the archive holds."""
    folder = PublicationFolder(publication)
    yield STATE, folder.current_state()
    yield LEDGER_SEEN, folder.ledger_seen()
    yield from _shards_begun(storage, folder.shards_begun())
    yield KNOWN_TOPICS, folder.known_topics()
    for marker in storage.files(folder.pending(), ".json"):
        outbox = marker.split("-", 1)[1].removesuffix(".json")
        yield MANIFEST, folder.manifest(outbox)
        yield STATUS, folder.status(outbox)


def _documents(storage: Storage, folder: PublicationFolder) -> Iterator[tuple[Kind, str]]:
    yield STATE, folder.current_state()
    yield LEDGER_SEEN, folder.ledger_seen()
    yield from _shards_begun(storage, folder.shards_begun())
    yield KNOWN_TOPICS, folder.known_topics()
    for outbox in storage.folders(folder.outboxes()):
        yield from _of_outbox(storage, folder, outbox)
    for run in storage.folders(f"{folder.publication}/landing"):
        there = storage.files(folder.landing(run), ".json")
        known = ((LANDING, folder.landing_manifest(run)), (CLAIM, folder.landing_claim(run)))
        yield from ((kind, path) for kind, path in known if path.rsplit("/", 1)[1] in there)
    for outbox in storage.folders(f"{folder.publication}/report"):
        yield VERDICT, folder.verdict(outbox)


def _of_outbox(storage: Storage, folder: PublicationFolder, outbox: str) -> Iterator[tuple[Kind, str]]:
    there = storage.files(folder.outbox(outbox), ".json")
    known = (
        (MANIFEST, folder.manifest(outbox)),
        (STATUS, folder.status(outbox)),
        (CLAIM, folder.outbox_claim(outbox)),
        (DEAD_LETTERS, folder.dead_letters(outbox)),
        (KNOWN_TOPICS, folder.approved_topics(outbox)),
    )
    yield from ((kind, path) for kind, path in known if path.rsplit("/", 1)[1] in there)
    yield from _shards_begun(storage, folder.backfilled_shards_begun(outbox))
    for name in storage.files(folder.attempts(outbox), ".json"):
        yield ATTEMPTS, f"{folder.attempts(outbox)}/{name}"


def _shards_begun(storage: Storage, folder: str) -> Iterator[tuple[Kind, str]]:
    for name in storage.files(folder, ".json"):
        yield SHARD_BEGUN, f"{folder}/{name}"
