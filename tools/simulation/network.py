"""Requests on their way: in the order of a connection, and now and then late, twice, or without an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tools.simulation.events import Events, Process

_LATENCY_SECONDS = 0.002
_NOTICED_SECONDS = 0.05

T = TypeVar("T")


@dataclass(slots=True)
class Weather:
    """How likely what befalls a request is, by its kind.

    Attributes:
        held: it arrives much later, by a connection that its client has lost meanwhile.
        dropped: it never arrives, and the connection is lost.
        unanswered: it is carried out, and the connection is lost before the answer comes.
        leader_lost: when it arrives, its partition (of EndTxn: the ledger's, or one of data) loses its leader.
        late_markers: a marker comes late, up to `late_seconds`.
        lost_markers: the marker of a partition that has no leader is left out, instead of being tried again.
        held_seconds, leaderless_seconds, late_seconds: the longest.
    """

    held: Mapping[str, float] = field(default_factory=dict)
    dropped: Mapping[str, float] = field(default_factory=dict)
    unanswered: Mapping[str, float] = field(default_factory=dict)
    leader_lost: Mapping[str, float] = field(default_factory=dict)
    late_markers: float = 0.0
    lost_markers: float = 0.0
    held_seconds: float = 3.0
    leaderless_seconds: float = 4.0
    late_seconds: float = 2.0


@dataclass(slots=True)
class Request(Generic[T]):
    """One on its way.

    Attributes:
        process: whose client sends it.
        connection: those of one connection arrive in their order.
        kind: `EndTxn` and so on.
        detail: for the trace.
        handle: what the broker does; gives the answer.
        answered: what the client does with it.
        lost: what the client does when the connection is lost before.
    """

    process: Process
    connection: tuple[object, ...]
    kind: str
    detail: str
    handle: Callable[[], T]
    answered: Callable[[T], None]
    lost: Callable[[], None]


class Network:
    """Between clients and brokers.

    Args:
        events: of the run.
        weather: of the run; a quiet one once `calm` was called.
    """

    def __init__(self, events: Events, weather: Weather) -> None:
        self.events = events
        self.weather = weather
        self._arrivals: dict[tuple[object, ...], float] = {}
        self.under_way = 0

    def calm(self) -> None:
        """Nothing befalls requests any more; those on their way come when they come."""
        self.weather = Weather()

    def happens(self, what: Mapping[str, float], kind: str) -> bool:
        """Returns whether something befalls a request; draws nothing where it can't."""
        likely = what.get(kind, 0.0)
        return likely > 0 and self.events.random.random() < likely

    def send(self, request: Request[T]) -> None:
        """Sends it."""
        draw = self.events.random.random
        arrives = max(self._arrivals.get(request.connection, 0.0), self.events.now + _LATENCY_SECONDS * (0.2 + draw()))
        weather = self.weather
        if self.happens(weather.held, request.kind):
            self._lose(request)
            late = _NOTICED_SECONDS + weather.held_seconds * draw() ** 2
            self._note(request, f"held for {late:.2f} s, its connection is cut")
            self._arrive(request, late, keeps_answer=False)
        elif self.happens(weather.dropped, request.kind):
            self._note(request, "dropped, its connection is cut")
            self._lose(request)
        else:
            self._arrivals[request.connection] = arrives
            keeps = not self.happens(weather.unanswered, request.kind)
            self._arrive(request, arrives - self.events.now, keeps_answer=keeps)
            if not keeps:
                self._note(request, "its answer gets lost")
                self._lose(request)

    def _lose(self, request: Request[T]) -> None:
        noticed = _NOTICED_SECONDS * (0.5 + self.events.random.random())
        self.events.after(noticed, request.process.owns(request.lost))

    def _arrive(self, request: Request[T], seconds: float, *, keeps_answer: bool) -> None:
        self.under_way += 1

        def arrived() -> None:
            self.under_way -= 1
            answer = request.handle()
            if self.events.is_traced:
                self._note(request, str(answer) if keeps_answer else f"{answer}, which no one receives")
            if keeps_answer:
                back = _LATENCY_SECONDS * (0.2 + self.events.random.random())
                self.events.after(back, request.process.owns(lambda: request.answered(answer)))

        self.events.after(seconds, arrived)

    def _note(self, request: Request[T], what: str) -> None:
        if self.events.is_traced:
            self.events.note(f"    {request.kind} of {request.process.name} {request.detail}: {what}")
