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
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.outboxes import ENDS, OutboxStatus
from contexture.storage.paths import PublicationPaths
from contexture.storage.publication_store import PublicationStore, RunStore

_LONGEST_WRITE: Final = timedelta(days=1)


def expire(store: PublicationStore, *, archive_days: int, now: datetime) -> list[str]:
    """Removes what is older than the archive; gives the ids of the outboxes among it.

    Raises:
        RetriableError: the storage failed; doing it again ends what was begun.
    """
    outboxes, home, paths = store.outboxes, store.home, PublicationPaths(store.name)
    limit = now.astimezone(UTC) - timedelta(days=archive_days)
    known = outboxes.all()
    old = {item.outbox for item in known if item.status in ENDS and item.steps[-1].at < limit}
    for outbox in old:
        _remove_outbox(home, paths, outbox, outboxes.manifest(outbox).run)
    _remove_pieces(home, paths, {item.outbox for item in known}, limit)
    _remove_fruitless(store, [item for item in known if item.outbox not in old], limit)
    _remove_begun(store.state.folder, now.astimezone(UTC) - _LONGEST_WRITE)
    return [item.outbox for item in known if item.outbox in old]


def _remove_outbox(home: FileTree, paths: PublicationPaths, outbox: str, run: str) -> None:
    # The status goes near the end: while it is there, a removal that was cut short is done again. The manifest, which
    # that needs, goes after it; without a status the rest goes as pieces.
    for path in (
        paths.landing(run),
        paths.orders(run),
        paths.quarantine(outbox),
        paths.report(outbox),
        paths.status(outbox),
        paths.outbox(outbox),
    ):
        home.remove(path)


def _remove_pieces(home: FileTree, paths: PublicationPaths, known: Container[str], limit: datetime) -> None:
    """Removes what belongs to no outbox that has a status: it was never ready, or its removal was cut short."""
    for parts in (paths.quarantines(), paths.reports(), paths.outboxes()):
        for outbox, at in home.written_at(parts).items():
            if outbox not in known and at < limit:
                home.remove(f"{parts}/{outbox}")


def _remove_fruitless(store: PublicationStore, kept: Iterable[OutboxStatus], limit: datetime) -> None:
    """Removes the orders and landings of runs without an outbox."""
    old = {run for run, at in store.runs.written_at().items() if at < limit}
    if not old:
        return
    try:
        used = {store.outboxes.manifest(item.outbox).run for item in kept}
    except (ConfigurationError, DefectError):
        # Which of them have an outbox is not known: then none is treated as one without.
        return
    sequence = store.state.pointer().sequence
    for run in old - used:
        if _is_over(store.run(run), sequence):
            # The order goes last: while it is there, a removal that was cut short is done again.
            for folder in (store.run(run).work, store.landing(run), store.run(run)):
                folder.remove()


def _is_over(run: RunStore, sequence: int) -> bool:
    """Returns whether a run cannot continue: a later one has concluded. One that waits for an answer still can."""
    try:
        order = run.order()
    except (FileNotFoundError, DefectError):
        return True
    except ConfigurationError:
        # A later Contexture wrote it.
        return False
    return order.mode == "backfill" or order.sequence <= sequence


def _remove_begun(folder: StoredFolder, limit: datetime) -> None:
    """Removes files that were begun and never got their names."""
    for name, at in folder.written_at().items():
        if name.startswith(".") and at < limit:
            folder.remove(name)
