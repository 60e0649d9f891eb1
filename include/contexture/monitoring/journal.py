"""Writes the operational tables from a thread; a failure to write never fails or delays a run."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, Self

from contexture.monitoring.store import RunTables

if TYPE_CHECKING:
    from contexture.storage.home import ProgressCallback

TableWrite = Callable[[RunTables], object]
"""A call that writes to the tables."""

_QUEUE_LENGTH = 1_000
# The work is done at that time: a database that is only slow must not lose what was queued.
_CLOSE_SECONDS = 15.0
_IDLE_SECONDS = 0.05


class RunTableWriter:
    """A context that queues writes to the operational tables and executes them in one thread, during the work.

    The first failure is reported once and ends the writing, because the tables can be rebuilt and a send cannot wait.

    Args:
        store: the tables; None where there are none.
        report: receives the sentence about the failure.
        close_seconds: how long the end of the block waits for writes that are still queued.
    """

    def __init__(
        self,
        store: RunTables | None,
        report: ProgressCallback = lambda sentence: None,
        *,
        close_seconds: float = _CLOSE_SECONDS,
    ) -> None:
        self._store = store
        self._report = report
        self._close_seconds = close_seconds
        self._queue: Queue[TableWrite] = Queue(_QUEUE_LENGTH)
        self._thread: Thread | None = None
        self._stopped = store is None
        self._closing = False

    def write(self, call: TableWrite) -> None:
        """Queues a call; returns immediately and never raises."""
        if self._stopped:
            return
        try:
            self._queue.put_nowait(call)
        except Full:
            self._stop("they are slower than the sending")
            return
        if self._thread is None:
            # A daemon, because a database that hangs must keep no process alive.
            self._thread = Thread(target=self._execute_queue, name="contexture-journal", daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._closing = True
        if self._thread is not None:
            self._thread.join(self._close_seconds)
            if self._thread.is_alive():
                self._stop("they do not respond in time")

    def _execute_queue(self) -> None:
        assert self._store is not None
        while not self._stopped:
            try:
                call = self._queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                if self._closing:
                    break
                continue
            try:
                call(self._store)
            except Exception as error:  # whatever it is, the work continues without the tables
                self._stop(str(error))
        self._store.close()

    def _stop(self, reason: str) -> None:
        if not self._stopped:
            self._stopped = True
            self._report(f"stopped writing to the operational tables: {reason.rstrip('.')}. Sending continues")
