"""Virtual time: events in their order, and processes that run until they wait for one.

Processes are greenlets: one runs at a time and nothing else decides which, so that a seed gives the same run again.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from contextlib import suppress

from greenlet import getcurrent, greenlet

_MOST_EVENTS = 200_000
# When each run begins, in seconds since 1970.
_BEGINS = 1_800_000_000.0


def wall_seconds(now: float) -> float:
    """Returns the time of day at a moment of a run."""
    return _BEGINS + now


class KilledError(BaseException):
    """Ends a process that was killed; as with SIGKILL, none of its calls reaches a broker any more."""


class EndlessError(Exception):
    """A run did not come to an end: a defect of the simulation, or a sender that asks for ever."""


class Process:
    """One operating-system process, with the clients it has.

    Args:
        events: of the run.
        name: for the trace.
        body: what it does.

    Attributes:
        calls: how many calls of a client it made.
        is_alive: False once it was killed or has ended.
        paused_until: SIGSTOP until then.
        dies_at, stops_at: the call at which it is killed, or stopped for `stops_seconds`; 0 for never.
    """

    def __init__(self, events: Events, name: str, body: Callable[[], None]) -> None:
        self.events = events
        self.name = name
        self.calls = 0
        self.is_alive = True
        self.was_killed = False
        self.paused_until = 0.0
        self.dies_at = 0
        self.stops_at = 0
        self.stops_seconds = 0.0
        self.on_end: Callable[[Process], None] = lambda process: None
        self._body = body
        self._greenlet = greenlet(self._run)

    def start(self, delay: float = 0.0) -> None:
        """Lets it begin after some seconds."""
        self.events.after(delay, self._resume)

    def kill(self) -> None:
        """SIGKILL, from outside."""
        if self.is_alive:
            self.is_alive = False
            self.was_killed = True
            self.events.note(f"{self.name}: killed at call {self.calls}")
            self._switch(thrown=True)

    def pause(self, seconds: float) -> None:
        """SIGSTOP for some seconds."""
        self.paused_until = max(self.paused_until, self.events.now + seconds)
        self.events.note(f"{self.name}: stopped for {seconds:.1f} s at call {self.calls}")

    def wake(self) -> None:
        """Lets it look again at what it waits for."""
        self.events.after(0.0, self._resume)

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Waits until something is so, or that many seconds are over; gives whether it is."""
        until = self.events.now + seconds
        if not done():
            self.events.after(seconds, self._resume)
            while not done() and self.events.now < until:
                self._yield()
        return done()

    def call(self, what: str, seconds: float = 0.0005) -> None:
        """A call of a client: others come to their turn, and here the process may be killed or stopped.

        Raises:
            KilledError: it was.
        """
        self.calls += 1
        if not self.is_alive:
            raise KilledError
        if self.events.is_traced:
            self.events.note(f"{self.name}: {what}")
        if self.calls == self.dies_at:
            self.is_alive = False
            self.was_killed = True
            self.events.note(f"{self.name}: killed at call {self.calls}, {what}")
            raise KilledError
        if self.calls == self.stops_at:
            self.pause(self.stops_seconds)
        self.sleep(seconds * (0.5 + self.events.random.random()))

    def sleep(self, seconds: float) -> None:
        """Waits."""
        until = self.events.now + max(0.0, seconds)
        self.events.after(max(0.0, seconds), self._resume)
        while self.events.now < until or self.paused_until > self.events.now:
            self._yield()

    def owns(self, act: Callable[[], None]) -> Callable[[], None]:
        """Returns an act of this process's clients: nothing once it is dead, later while it is stopped."""

        def acted() -> None:
            if not self.is_alive:
                return
            if self.paused_until > self.events.now:
                self.events.after(self.paused_until - self.events.now, acted)
                return
            act()

        return acted

    def _yield(self) -> None:
        if not self.is_alive:
            raise KilledError
        hub = self.events.hub
        assert getcurrent() is self._greenlet
        hub.switch()
        if not self.is_alive:
            raise KilledError

    def _resume(self) -> None:
        if not self.is_alive or self._greenlet.dead:
            return
        if self.paused_until > self.events.now:
            self.events.after(self.paused_until - self.events.now, self._resume)
            return
        self._switch()

    def _switch(self, *, thrown: bool = False) -> None:
        if self._greenlet.dead or (thrown and not self._greenlet):
            self.on_end(self)
            return
        before, self.events.current = self.events.current, self
        try:
            if thrown:
                self._greenlet.throw(KilledError)
            else:
                self._greenlet.switch()
        finally:
            self.events.current = before
        if self._greenlet.dead:
            self.is_alive = False
            self.on_end(self)

    def _run(self) -> None:
        with suppress(KilledError):
            self._body()


class Events:
    """The clock and what is to happen.

    Args:
        seed: of everything that is drawn.
        traced: keep what happens for people.
    """

    def __init__(self, seed: int, *, traced: bool = False) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.current: Process | None = None
        self.hub = getcurrent()
        self.trace: list[str] = []
        self.is_traced = traced
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._happened = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Lets something happen some seconds from now."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + seconds, self._count, act))

    def run(self, done: Callable[[], bool], until: float) -> bool:
        """Lets things happen until something is so; False when the time is over before, or nothing is left.

        Raises:
            EndlessError: too much happened.
        """
        while not done():
            if not self._heap or self._heap[0][0] > until:
                return False
            self.now, _, act = heapq.heappop(self._heap)
            self._happened += 1
            if self._happened > _MOST_EVENTS:
                raise EndlessError(f"{_MOST_EVENTS} events, and no end")
            act()
        return True

    def clock(self) -> float:
        """Returns the time now; a microsecond passes with each look, so that no two moments are the same."""
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        """As `time.sleep`, for the process that runs."""
        assert self.current is not None
        self.current.call(f"sleeps {seconds:.3f} s", 0.0)
        self.current.sleep(seconds)

    def note(self, what: str) -> None:
        """Keeps what happened."""
        if self.is_traced:
            self.trace.append(f"{self.now:9.4f}  {what}")

    def say(self, what: Callable[[], str]) -> None:
        """The same for what costs to be put into words."""
        if self.is_traced:
            self.note(what())
