"""Checks that this Contexture reads the formats of what the next run reads first.

Parquet files have no format of their own: those of an outbox go by its manifest, those of state by `CURRENT`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from contexture.storage.delivery import KnownLedger, ShardBegun
from contexture.storage.documents import Versioned, check_format
from contexture.storage.home import Storage
from contexture.storage.known_topics import KnownTopics
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.state import StatePointer


def check_formats(storage: Storage, publication: str) -> None:
    """Checks the documents that the next run reads first: few, whatever the archive holds.

    Raises:
        UnknownFormatError: another version of Contexture wrote one.
        RetriableError: the storage did not answer.
    """
    for kind, path in _documents(storage, PublicationFolder(publication)):
        check_document(storage, kind, path)


def check_document(storage: Storage, kind: type[Versioned], path: str) -> None:
    """Checks one document; passes where there is none, or where it cannot be read, which its reader reports.

    Raises:
        UnknownFormatError: another version of Contexture wrote it.
    """
    try:
        read = json.loads(storage.read(path))
    except (FileNotFoundError, ValueError, RecursionError):
        return
    if isinstance(read, dict):
        check_format(path, read.get(kind.FORMAT_MEMBER), kind.FORMAT)


def _documents(storage: Storage, folder: PublicationFolder) -> Iterator[tuple[type[Versioned], str]]:
    yield StatePointer, folder.current_state()
    yield KnownLedger, folder.ledger_seen()
    yield KnownTopics, folder.known_topics()
    for name in storage.files(folder.shards_begun(), ".json"):
        yield ShardBegun, f"{folder.shards_begun()}/{name}"
    for marker in storage.files(folder.pending(), ".json"):
        outbox = marker.split("-", 1)[1].removesuffix(".json")
        yield Manifest, folder.manifest(outbox)
        yield OutboxStatus, folder.status(outbox)
