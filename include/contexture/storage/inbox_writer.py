"""Keeping notifications for good before they are acknowledged.

Called by `contexture.reception`, from any thread or event loop. One thread writes: what arrives while it waits for the
disk goes into the next file together (group commit), so that the disk is waited for once per group.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread

from contexture.errors import RetriableError
from contexture.storage.inbox_files import InboxEntry, InboxFile, InboxFolder, encode_entry, encode_file

MAXIMUM_BYTES = 4 << 30
MAXIMUM_GROUP_BYTES = 16 << 20
MAXIMUM_WAITING_BYTES = 64 << 20
_MEASURE_SECONDS = 1.0


class InboxUnavailableError(RetriableError):
    """The notification was not kept; the same one may be kept later."""

    @property
    def retry_after_seconds(self) -> int:
        """When to come again."""
        return int(str(self.context.get("retry_after_seconds", 5)))


@dataclass(frozen=True, slots=True)
class _Waiting:
    entry: InboxEntry
    encoded: bytes
    kept: Future[None] = field(default_factory=Future)


class InboxWriter:
    """Keeps notifications in the order they are given, each with a time of its own.

    Args:
        folder: where files are put.
        maximum_bytes: what the inbox may take up in all; more is refused until a run has taken something out. Several
            writers see each other's files within a second.
        maximum_waiting_bytes: what may wait in memory for the disk.
        clock_ns: nanoseconds since 1970. Times never go back, even where the clock does: they follow what this writer
            wrote, what is in the inbox when it starts, and, within a second, what other writers put there.

    Raises:
        OSError, RetriableError: the inbox cannot be listed.
    """

    def __init__(
        self,
        folder: InboxFolder,
        *,
        maximum_bytes: int = MAXIMUM_BYTES,
        maximum_waiting_bytes: int = MAXIMUM_WAITING_BYTES,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._maximum_bytes = maximum_bytes
        self._maximum_waiting_bytes = maximum_waiting_bytes
        self._clock_ns = clock_ns
        self._writer = uuid.uuid4().hex[:12]
        self._changed = Condition()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        # A clock that was set back while no writer ran would put what arrives now before what arrived then.
        self._last_us = folder.newest_us()
        self._sequence = 0
        self._closed = False
        self._thread: Thread | None = None
        self._used_bytes = 0
        self._measured_at = float("-inf")

    def submit(self, headers: Mapping[str, str], body: bytes) -> Future[None]:
        """Hands a notification over; the future is done when it is kept for good.

        The future's error is an `InboxUnavailableError` where it couldn't be kept; then nothing of it stays.

        Raises:
            InboxUnavailableError: too much waits already, or the writer is closed.
        """
        with self._changed:
            if self._closed:
                raise _unavailable("the inbox is closing", "notify again when it is up")
            if self._waiting_bytes + len(body) > self._maximum_waiting_bytes:
                raise _unavailable("the disk is slower than notifications arrive", "notify again later")
            waiting = self._stamped(headers, body)
            self._waiting.append(waiting)
            self._waiting_bytes += len(waiting.encoded)
            self._start()
            self._changed.notify()
        return waiting.kept

    def close(self) -> None:
        """Keeps what waits, and takes no more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _stamped(self, headers: Mapping[str, str], body: bytes) -> _Waiting:
        self._last_us = max(self._clock_ns() // 1000, self._last_us + 1)
        entry = InboxEntry(self._last_us, self._sequence, headers, body)
        self._sequence += 1
        return _Waiting(entry, encode_entry(entry))

    def _start(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._write_groups, name="inbox", daemon=True)
            self._thread.start()

    def _write_groups(self) -> None:
        while group := self._next_group():
            # A sender that closed the connection received no confirmation.
            group = [waiting for waiting in group if waiting.kept.set_running_or_notify_cancel()]
            kept, error = self._keep(group)
            for waiting in group[:kept]:
                waiting.kept.set_result(None)
            for waiting in group[kept:]:
                waiting.kept.set_exception(error)

    def _next_group(self) -> list[_Waiting]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            group: list[_Waiting] = []
            size = 0
            while self._waiting and (not group or size + len(self._waiting[0].encoded) <= MAXIMUM_GROUP_BYTES):
                group.append(self._waiting.popleft())
                size += len(group[-1].encoded)
            self._waiting_bytes -= size
            return group

    def _keep(self, group: list[_Waiting]) -> tuple[int, BaseException | None]:
        """How many of a group were kept, from its beginning, and why the others were not."""
        try:
            fitting = self._fitting(group)
            if fitting:
                first, last = group[0].entry, group[fitting - 1].entry
                content = encode_file([waiting.encoded for waiting in group[:fitting]])
                self._folder.put(
                    InboxFile(first.received_at_us, self._writer, first.sequence, last.received_at_us).name, content
                )
                self._used_bytes += len(content)
        except (OSError, RetriableError) as error:
            return 0, _unavailable(f"the inbox cannot be written: {_reason(error)}", "make room or repair the disk")
        except Exception as error:  # anyone who waits has to hear of it, whatever it is
            return 0, error
        full = _unavailable("the inbox is full", "start a run, which reads the inbox, or allow more bytes", 30)
        return fitting, full

    def _fitting(self, group: list[_Waiting]) -> int:
        sizes = [len(waiting.encoded) for waiting in group]
        stale = time.monotonic() - self._measured_at >= _MEASURE_SECONDS
        if stale:
            self._used_bytes = self._folder.used_bytes()
            newest = self._folder.newest_us()
            with self._changed:
                self._last_us = max(self._last_us, newest)
            self._measured_at = time.monotonic()
        room = self._maximum_bytes - self._used_bytes
        # After one that is too large none is stored, because a later one may be about the same entity.
        for number, size in enumerate(sizes):
            room -= size
            if room < 0:
                return number
        return len(group)


def _unavailable(message: str, next_step: str, retry_after_seconds: int = 5) -> InboxUnavailableError:
    return InboxUnavailableError(message, next_step=next_step, retry_after_seconds=retry_after_seconds)


def _reason(error: OSError | RetriableError) -> str:
    return error.message if isinstance(error, RetriableError) else error.strerror or type(error).__name__
