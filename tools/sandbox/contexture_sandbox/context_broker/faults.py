"""What can go wrong with a broker, on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

FaultKind = Literal["status", "drop", "truncate", "delay"]


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong with some of the requests to come.

    Attributes:
        kind: an answer with `status`; the connection dropped without an answer; half a body and then nothing;
            an answer that comes `seconds` late.
        nth: the first matching request it hits, 1 being the next one.
        times: how many matching requests in a row it hits; None for all of them.
        path: only requests whose path begins so.
        method: only requests of this method.
        headers: sent with the answer (`retry-after` …).
    """

    kind: FaultKind
    nth: int = 1
    times: int | None = 1
    path: str = "/v2/"
    method: str | None = None
    status: int = 503
    seconds: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    seen: int = 0

    def strikes(self, method: str, path: str) -> bool:
        """Whether it hits this request; to be asked once for each."""
        if not path.startswith(self.path) or (self.method is not None and method != self.method):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.seen < self.nth + self.times)


class Faults:
    """The faults of one broker.

    Attributes:
        database_gone: the broker lives, its database does not: entity and type lists are `200 []`, subscriptions 500,
            a single entity ends the connection, `/version` is well.
        delay_seconds: every answer of the NGSI API comes this late.
        after_page: called with the number of pages so far, after the content of an entity list was chosen and before
            it is sent: what it changes in the store happens between two pages.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._planned: list[Fault] = []
        self.database_gone = False
        self.delay_seconds = 0.0
        self.after_page: Callable[[int], None] | None = None

    def plan(self, fault: Fault) -> Fault:
        """Add a fault to those that wait for their request."""
        with self._lock:
            self._planned.append(fault)
        return fault

    def fail(self, *, nth: int = 1, status: int = 503, times: int | None = 1, path: str = "/v2/") -> Fault:
        """Answer with an error status."""
        return self.plan(Fault("status", nth=nth, status=status, times=times, path=path))

    def drop(self, *, nth: int = 1, times: int | None = 1, path: str = "/v2/") -> Fault:
        """Close the connection without an answer."""
        return self.plan(Fault("drop", nth=nth, times=times, path=path))

    def truncate(self, *, nth: int = 1, times: int | None = 1, path: str = "/v2/") -> Fault:
        """Send half of the body, then close the connection."""
        return self.plan(Fault("truncate", nth=nth, times=times, path=path))

    def delay(self, seconds: float, *, nth: int = 1, times: int | None = 1, path: str = "/v2/") -> Fault:
        """Answer late."""
        return self.plan(Fault("delay", nth=nth, times=times, path=path, seconds=seconds))

    def striking(self, method: str, path: str) -> list[Fault]:
        """The faults that hit this request."""
        with self._lock:
            return [fault for fault in self._planned if fault.strikes(method, path)]

    def clear(self) -> None:
        """Be well again."""
        with self._lock:
            self._planned.clear()
        self.database_gone = False
        self.delay_seconds = 0.0
        self.after_page = None
