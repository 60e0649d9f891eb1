"""Writes the operational tables; a failure to write never fails or delays a run."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, Full, Queue
from threading import Thread
from types import TracebackType
from typing import Self

from contexture.monitoring.store import RunTables

Note = Callable[[RunTables], object]

_WAITING_NOTES = 1_000
# The work is done by then: a database that is only slow shall not lose what it was told of it.
_CLOSE_SECONDS = 15.0
_IDLE_SECONDS = 0.05


class RunTableWriter:
    """Notes for the operational tables, written beside the work by one thread; what can't be written is let go.

    The first failure is reported, once, and nothing more is tried: the tables can be rebuilt, a send can not wait.

    Args:
        store: where to; None for nowhere.
        report: gets the one sentence about a failure.
        close_seconds: how long the end of the block waits for notes that are not yet written.
    """

    def __init__(
        self,
        store: RunTables | None,
        report: Callable[[str], None] = lambda sentence: None,
        *,
        close_seconds: float = _CLOSE_SECONDS,
    ) -> None:
        self._store = store
        self._report = report
        self._close_seconds = close_seconds
        self._notes: Queue[Note] = Queue(_WAITING_NOTES)
        self._thread: Thread | None = None
        self._given_up = store is None
        self._closing = False

    def note(self, note: Note) -> None:
        """Has something written soon; returns at once and never raises."""
        if self._given_up:
            return
        try:
            self._notes.put_nowait(note)
        except Full:
            self._give_up("they are slower than the sending")
            return
        if self._thread is None:
            # A daemon, so that a database that hangs keeps no process alive.
            self._thread = Thread(target=self._write, name="contexture-journal", daemon=True)
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        if self._thread is not None:
            self._thread.join(self._close_seconds)
            if self._thread.is_alive():
                self._give_up("they do not answer in time")

    def _write(self) -> None:
        assert self._store is not None
        while not self._given_up:
            try:
                note = self._notes.get(timeout=_IDLE_SECONDS)
            except Empty:
                if self._closing:
                    break
                continue
            try:
                note(self._store)
            except Exception as error:  # whatever it is, the work goes on without the tables
                self._give_up(str(error))
        self._store.close()

    def _give_up(self, reason: str) -> None:
        if not self._given_up:
            self._given_up = True
            self._report(f"nothing more is noted in the operational tables: {reason.rstrip('.')}. Sending goes on")
