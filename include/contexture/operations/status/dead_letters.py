"""The dead letters of a publication."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from contexture.errors import ConfigurationError, DefectError
from contexture.monitoring.history import NO_DEAD_LETTERS, DeadLetterTotals
from contexture.monitoring.rows import TransactionRow
from contexture.operations.status.sources import Paging, Sources
from contexture.storage.documents import StoredDocument
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationStore


class DeadLetterStatus(StoredDocument):
    """Records that can never be sent, and are in the dead-letter topic instead.

    Attributes:
        topic: where they are sent; None where the file has them stop the sending, or there is no good file.
        last_run: how many the last concluded run sent there; None where its files are no longer stored.
        kept: how many all runs sent there whose transactions are stored; None without the operational tables.
        last_at: when the last of these was.
        outstanding: whether no full run has tried them again since.
    """

    topic: str | None = None
    last_run: int | None = None
    kept: int | None = None
    last_at: datetime | None = None
    outstanding: bool = False


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """A page of the transactions with dead letters, the latest first.

    Attributes:
        topic: the dead-letter topic by the file as it is now; None where they stop the sending.
        connection: id of the connection to Kafka; None without a good file.
        totals: all that the operational tables show.
    """

    topic: str | None
    connection: str | None
    totals: DeadLetterTotals
    rows: tuple[TransactionRow, ...]
    paging: Paging
    tables_problem: str | None


def dead_letter_topic(sources: Sources, name: str) -> str | None:
    """Returns the dead-letter topic that the file of a publication names; None where such records stop the sending."""
    configured = sources.publications.get(name)
    return configured.dead_letter_topic if configured else None


def count_dead_letters(sources: Sources, name: str) -> DeadLetterTotals | None:
    """Returns what the tables count; None without tables."""
    return sources.tables.ask(lambda history: history.dead_letters(name), None)


def dead_letter_status(sources: Sources, name: str, last: Manifest | None) -> DeadLetterStatus:
    """What monitoring should know; `last` is the manifest of what was concluded last.

    Raises:
        RetriableError: the storage did not answer.
    """
    totals = count_dead_letters(sources, name)
    return DeadLetterStatus(
        topic=dead_letter_topic(sources, name),
        last_run=of_outbox(sources.home.publication(name), last) if last else None,
        kept=totals.letters if totals else None,
        last_at=totals.last_at if totals else None,
        outstanding=bool(totals and totals.outstanding),
    )


def of_outbox(store: PublicationStore, manifest: Manifest) -> int | None:
    """How many records of a concluded outbox are dead letters; None where the index is damaged.

    Raises:
        RetriableError: the storage did not answer.
    """
    try:
        return store.outbox(manifest.outbox).dead_letters().count
    except (ConfigurationError, DefectError, ValidationError):
        return None


def dead_letter_page(sources: Sources, name: str, *, page: int) -> DeadLetterPage:
    """Returns a page of the transactions of a publication that have dead letters."""
    configured = sources.publications.get(name)
    totals = count_dead_letters(sources, name) or NO_DEAD_LETTERS
    paging = Paging.of(page, totals.transactions)
    rows = sources.tables.ask(
        lambda history: history.transactions(name, with_dead_letters=True, limit=paging.size, offset=paging.offset), ()
    )
    return DeadLetterPage(
        topic=dead_letter_topic(sources, name),
        connection=configured.publish.connection if configured else None,
        totals=totals,
        rows=tuple(rows),
        paging=paging,
        tables_problem=sources.tables.problem,
    )
