"""What can go wrong with a registry, on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Literal

FaultKind = Literal["status", "page", "drop", "truncate", "delay", "empty", "half"]
KINDS: tuple[FaultKind, ...] = ("status", "page", "drop", "truncate", "delay", "empty", "half")


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong with some of the requests to come.

    Attributes:
        kind: an answer with `status`; a web server's page with `status`, as if the registry weren't there; the
            connection dropped without an answer; half a body and then nothing; an answer that comes `seconds` late; a
            well-formed answer that holds nothing, or half of what there is.
        nth: the first matching request it hits, 1 being the next one.
        times: how many matching requests in a row it hits; None for all of them.
        path: only requests whose path begins so.
        method: only requests of this method.
        headers: sent with the answer (`retry-after` …).
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

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of fault {self.kind}; known: {', '.join(KINDS)}")

    def strikes(self, method: str, path: str) -> bool:
        """Whether it hits this request; to be asked once for each."""
        if not path.startswith(self.path) or (self.method is not None and method != self.method):
            return False
        self.seen += 1
        return self.seen >= self.nth and (self.times is None or self.seen < self.nth + self.times)


class Faults:
    """The faults of one registry."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._planned: list[Fault] = []

    def plan(self, fault: Fault) -> Fault:
        """Add a fault to those that wait for their request."""
        with self._lock:
            self._planned.append(fault)
        return fault

    def fail(self, *, nth: int = 1, status: int = 500, times: int | None = 1, path: str = "/") -> Fault:
        """Answer with an error status."""
        return self.plan(Fault("status", nth=nth, status=status, times=times, path=path))

    def page(self, *, nth: int = 1, status: int = 404, times: int | None = None, path: str = "/") -> Fault:
        """Answer as a web server does in which the registry is not running."""
        return self.plan(Fault("page", nth=nth, status=status, times=times, path=path))

    def empty(self, *, nth: int = 1, times: int | None = 1, path: str = "/") -> Fault:
        """Answer as if there were nothing."""
        return self.plan(Fault("empty", nth=nth, times=times, path=path))

    def half(self, *, nth: int = 1, times: int | None = 1, path: str = "/") -> Fault:
        """Answer, well formed, with the first half of what there is."""
        return self.plan(Fault("half", nth=nth, times=times, path=path))

    def truncate(self, *, nth: int = 1, times: int | None = 1, path: str = "/") -> Fault:
        """Send half of the body, then close the connection."""
        return self.plan(Fault("truncate", nth=nth, times=times, path=path))

    def drop(self, *, nth: int = 1, times: int | None = 1, path: str = "/") -> Fault:
        """Close the connection without an answer."""
        return self.plan(Fault("drop", nth=nth, times=times, path=path))

    def delay(self, seconds: float, *, nth: int = 1, times: int | None = 1, path: str = "/") -> Fault:
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
