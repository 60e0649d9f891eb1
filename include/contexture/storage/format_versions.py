"""Checks that this Contexture reads the formats of what the next run reads first.

Parquet files have no format of their own: those of an outbox go by its manifest, those of state by `CURRENT`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from contexture.storage.delivery import KnownLedger, ShardBegun
from contexture.storage.documents import Versioned, check_format
from contexture.storage.file_tree import FileTree
from contexture.storage.known_topics import KnownTopics
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.paths import CURRENT, PublicationPaths
from contexture.storage.publication_store import PublicationStore
from contexture.storage.state import StatePointer


def check_formats(store: PublicationStore) -> None:
    """Checks the documents that the next run reads first: few, whatever the archive holds.

    Raises:
        UnknownFormatError: another version of Contexture wrote one.
        RetriableError: the storage did not answer.
    """
    for kind, path in _documents(store.home, PublicationPaths(store.name)):
        check_document(store.home, kind, path)


def check_document(home: FileTree, kind: type[Versioned], path: str) -> None:
    """Checks one document; passes where there is none, or where it cannot be read, which its reader reports.

    Raises:
        UnknownFormatError: another version of Contexture wrote it.
    """
    try:
        read = json.loads(home.read(path))
    except (FileNotFoundError, ValueError, RecursionError):
        return
    if isinstance(read, dict):
        check_format(path, read.get(kind.FORMAT_MEMBER), kind.FORMAT)


def _documents(home: FileTree, paths: PublicationPaths) -> Iterator[tuple[type[Versioned], str]]:
    yield StatePointer, f"{paths.state()}/{CURRENT}"
    yield KnownLedger, paths.ledger_seen()
    yield KnownTopics, paths.known_topics()
    for name in home.files(paths.shards_begun(), ".json"):
        yield ShardBegun, f"{paths.shards_begun()}/{name}"
    for marker in home.files(paths.pending(), ".json"):
        outbox = marker.split("-", 1)[1].removesuffix(".json")
        yield Manifest, paths.manifest(outbox)
        yield OutboxStatus, paths.status(outbox)
