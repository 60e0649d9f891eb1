"""What goes when it is older than the archive, so that a home does not grow for ever.

Outboxes at their end go with all that belongs to their runs. Runs that failed before there was an outbox left what they
had read, and have nothing that could go instead of it; those that failed while they made one left pieces of it. A
process that was killed may have left half of a file in state.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from contexture.errors import ConfigurationError, DefectError
from contexture.storage.home import Storage
from contexture.storage.orders import StageOrder
from contexture.storage.outboxes import ENDS, Outboxes, OutboxStatus
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.state import State

_LONGEST_WRITE: Final = timedelta(days=1)


def expire(storage: Storage, publication: str, *, archive_days: int, now: datetime) -> list[str]:
    """Removes what is older than the archive; gives the ids of the outboxes among it.

    Raises:
        RetriableError: the storage failed; doing it again ends what was begun.
    """
    outboxes = Outboxes(storage, publication)
    limit = now.astimezone(UTC) - timedelta(days=archive_days)
    known = outboxes.all()
    old = {item.outbox for item in known if item.status in ENDS and item.steps[-1].at < limit}
    for outbox in old:
        _remove_outbox(storage, outboxes.folder, outbox, outboxes.manifest(outbox).run)
    _remove_pieces(storage, outboxes.folder, {item.outbox for item in known}, limit)
    _remove_fruitless(outboxes, [item for item in known if item.outbox not in old], limit)
    _remove_begun(storage, outboxes.folder.state(), now.astimezone(UTC) - _LONGEST_WRITE)
    return [item.outbox for item in known if item.outbox in old]


def _remove_outbox(storage: Storage, folder: PublicationFolder, outbox: str, run: str) -> None:
    # The status goes near the end: while it is there, a removal that was cut short is done again. The manifest, which
    # that needs, goes after it; without a status the rest goes as pieces.
    for path in (
        folder.landing(run),
        folder.orders(run),
        folder.quarantine(outbox),
        folder.report(outbox),
        folder.status(outbox),
        folder.outbox(outbox),
    ):
        storage.remove(path)


def _remove_pieces(storage: Storage, folder: PublicationFolder, known: Container[str], limit: datetime) -> None:
    """Removes what belongs to no outbox that has a status: it was never ready, or its removal was cut short."""
    for parts in (folder.quarantines(), folder.reports(), folder.outboxes()):
        for outbox, at in storage.written_at(parts).items():
            if outbox not in known and at < limit:
                storage.remove(f"{parts}/{outbox}")


def _remove_fruitless(outboxes: Outboxes, kept: Iterable[OutboxStatus], limit: datetime) -> None:
    """Removes what runs without an outbox have read and were asked."""
    storage, folder = outboxes.storage, outboxes.folder
    old = {run for run, at in storage.written_at(folder.runs()).items() if at < limit}
    if not old:
        return
    try:
        used = {outboxes.manifest(item.outbox).run for item in kept}
    except (ConfigurationError, DefectError):
        # Which of them have an outbox is not known: then none is taken for one that has not.
        return
    sequence = State(storage, folder.publication).pointer().sequence
    for run in old - used:
        if _is_over(storage, folder.order(run), sequence):
            # The order goes last: while it is there, a removal that was cut short is done again.
            for path in (folder.work(run), folder.landing(run), folder.orders(run)):
                storage.remove(path)


def _is_over(storage: Storage, path: str, sequence: int) -> bool:
    """Whether the run of an order can't go on: a later one has concluded. One that waits for an answer still can."""
    try:
        order = StageOrder.from_file(storage, path)
    except (FileNotFoundError, DefectError):
        return True
    except ConfigurationError:
        # A later Contexture wrote it.
        return False
    return order.mode == "backfill" or order.sequence <= sequence


def _remove_begun(storage: Storage, folder: str, limit: datetime) -> None:
    """Removes files that were begun and never got their names."""
    for name, at in storage.written_at(folder).items():
        if name.startswith(".") and at < limit:
            storage.remove(f"{folder}/{name}")
