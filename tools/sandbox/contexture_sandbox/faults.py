"""Faults on demand: which of the requests to come a test server answers wrongly, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal

FaultKind = Literal["status", "page", "drop", "truncate", "delay", "empty", "half"]
OF_EVERY_SERVER: tuple[FaultKind, ...] = ("status", "drop", "truncate", "delay")


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong with some of the requests to come.

    Attributes:
        kind: a response with `status`; a web server's page with `status`, as if the service were not there; the
            connection dropped without a response; half a body and then nothing; a response that comes `seconds` late; a
            well-formed response that contains nothing, or half of what there is.
        nth: the first matching request it hits, 1 being the next one.
        times: how many matching requests in a row it hits; None for all of them.
        path: only requests whose path begins so.
        method: only requests of this method.
        headers: sent with the response (`retry-after` …).
    """

    kind: FaultKind
    nth: int = 1
    times: int | None = 1
    path: str = "/"
    method: str | None = None
    status: int = 500
    seconds: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    seen: int = 0

    def strikes(self, method: str, path: str) -> bool:
        """Returns whether it hits this request; to be called once for each."""
        if not path.startswith(self.path) or (self.method is not None and method != self.method):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.seen < self.nth + self.times)


class Faults:
    """The faults of one server.

    Args:
        kinds: those that the server knows.
        path: of a fault that names none.
        status: of a fault that names none.
    """

    def __init__(self, kinds: Iterable[FaultKind] = OF_EVERY_SERVER, *, path: str = "/", status: int = 500) -> None:
        self._kinds = tuple(kinds)
        self._path = path
        self._status = status
        self._lock = Lock()
        self._planned: list[Fault] = []

    def new(self, kind: FaultKind, *, path: str | None = None, status: int | None = None, **fields: Any) -> Fault:
        """Makes a fault with the defaults of this server, and does not plan it.

        Raises:
            ValueError: the server does not know this kind.
            TypeError: a field is unknown.
        """
        if kind not in self._kinds:
            raise ValueError(f"unknown kind of fault {kind}; known: {', '.join(self._kinds)}")
        path = self._path if path is None else path
        return Fault(kind, path=path, status=self._status if status is None else status, **fields)

    def plan(self, fault: Fault) -> Fault:
        """Adds a fault to those that wait for their request."""
        with self._lock:
            self._planned.append(fault)
        return fault

    def fail(self, *, nth: int = 1, status: int | None = None, times: int | None = 1, path: str | None = None) -> Fault:
        """Plans an error status as the response."""
        return self.plan(self.new("status", nth=nth, status=status, times=times, path=path))

    def drop(self, *, nth: int = 1, times: int | None = 1, path: str | None = None) -> Fault:
        """Plans a connection that is closed without a response."""
        return self.plan(self.new("drop", nth=nth, times=times, path=path))

    def truncate(self, *, nth: int = 1, times: int | None = 1, path: str | None = None) -> Fault:
        """Plans half of a body, and then a closed connection."""
        return self.plan(self.new("truncate", nth=nth, times=times, path=path))

    def delay(self, seconds: float, *, nth: int = 1, times: int | None = 1, path: str | None = None) -> Fault:
        """Plans a late response."""
        return self.plan(self.new("delay", nth=nth, times=times, path=path, seconds=seconds))

    def striking(self, method: str, path: str) -> list[Fault]:
        """Returns the faults that hit this request."""
        with self._lock:
            return [fault for fault in self._planned if fault.strikes(method, path)]

    def clear(self) -> None:
        """Removes all faults."""
        with self._lock:
            self._planned.clear()
