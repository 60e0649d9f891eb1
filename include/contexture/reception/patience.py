"""HTTP connections that are patient within bounds: whoever opens one has to say soon, and shortly, what is wanted.

uvicorn waits for ever for the headers of a first request, and every connection counts towards the requests that it has
under way at once: whoever reaches the port could keep notifiers out by opening connections and saying nothing.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientConnection(H11Protocol):
    """One connection; h11 refuses headers of more than 64 kB in all."""

    HEAD_SECONDS: ClassVar[float] = 10.0
    """How long the headers of a request may take."""

    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base has it
        """Begins to wait for a request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Takes what has arrived."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no more."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Closes the connection in time, unless the headers come to their end."""
        if self.conn.their_state is not h11.IDLE:
            self._forget()
        elif self._head_due is None:
            self._head_due = self.loop.call_later(self.HEAD_SECONDS, self.transport.close)

    def _forget(self) -> None:
        due, self._head_due = self._head_due, None
        if due is not None:
            due.cancel()
