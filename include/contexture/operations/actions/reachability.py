"""Whether anything responds where connections lead, found out within a second or two."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from contexture.errors import ContextureError
from contexture.sources.http.connection import HttpConnection
from contexture.sources.http.transport import HttpClient, RetryBudget

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings

_ONCE: Final = RetryBudget(attempts=1)
Opened = TypeVar("Opened")
_MOST: Final = 50
"""As many connections are probed at once; the others wait until these are known."""


def find_reach_problem(connection: HttpConnection | ClientSettings, seconds: float) -> str:
    """Returns why nothing responds where a connection leads; empty where something does.

    No credentials are sent: of Kafka each bootstrap server is connected to, of a source any response counts.
    """
    if not isinstance(connection, HttpConnection):
        from contexture.kafka.diagnosis import probe_addresses

        found = probe_addresses(connection.bootstrap_servers, seconds)
        return "; ".join(f"{each.address}: {each.problem}" for each in found if each.problem)
    plain = replace(connection, headers={}, grant=None, timeout_seconds=seconds)
    client: HttpClient | None = None
    try:
        client = HttpClient(plain, _ONCE)
        with client.stream("GET", "/", {}):
            return ""
    except ContextureError as error:
        return error.message
    finally:
        if client is not None:
            client.close()


@dataclass(frozen=True, slots=True)
class ReachProbe(Generic[Opened]):
    """How one connection is probed; what fails with a ContextureError is a reason too.

    Attributes:
        connection: its id.
        open: returns the connection as it is now; the result of an equal one applies to it.
        probe: returns why nothing responds where it leads; empty where something does.
    """

    connection: str
    open: Callable[[], Opened]
    probe: Callable[[Opened], str]


@dataclass(frozen=True, slots=True)
class _Found:
    connection: object
    problem: str
    at: float


class ReachabilityCache:
    """What the last probe of each connection found.

    Args:
        fresh_seconds: so long a result counts.
        clock: seconds, from any beginning.
    """

    def __init__(self, fresh_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._fresh_seconds = fresh_seconds
        self._clock = clock
        self._lock = Lock()
        self._found: dict[str, _Found] = {}
        self._running: set[str] = set()
        self._probing_since: dict[str, float] = {}

    def find_problems(self, probes: Iterable[ReachProbe[Any]], wait_seconds: float) -> dict[str, str]:
        """Returns the connections that do not respond, each with the reason.

        A probe that has not ended after `wait_seconds` counts as no response, unless the connection took most of that
        time to open. It continues, and its result counts later.
        """
        wanted = {each.connection: each for each in probes}
        done = SimpleQueue[str]()
        silent = self._start(wanted.values(), done)
        deadline = time.monotonic() + wait_seconds
        while silent and (left := deadline - time.monotonic()) > 0:
            with suppress(Empty):
                silent.discard(done.get(timeout=left))
        with self._lock:
            known = {name: each.problem for name, each in self._found.items() if name in wanted}
            began_late = deadline - wait_seconds / 2
            slow = {name for name in silent if self._probing_since.get(name, began_late) < began_late}
        late = dict.fromkeys(slow, f"no response within {wait_seconds:g} s")
        return {name: problem for name, problem in sorted((known | late).items()) if problem}

    def _start(self, probes: Iterable[ReachProbe[Any]], done: SimpleQueue[str]) -> set[str]:
        """Starts what does not run already; a thread for each, because they wait for the network only."""
        with self._lock:
            free = [each for each in probes if each.connection not in self._running][: _MOST - len(self._running)]
            self._running.update(each.connection for each in free)
        for each in free:
            Thread(target=self._run, args=(each, done), name="contexture-reachability", daemon=True).start()
        return {each.connection for each in free}

    def _run(self, probe: ReachProbe[Any], done: SimpleQueue[str]) -> None:
        found = _Found(None, "the probe itself failed", self._clock())
        try:
            found = self._find(probe)
        except ContextureError as error:
            found = _Found(None, str(error), self._clock())
        finally:
            with self._lock:
                self._found[probe.connection] = found
                self._running.discard(probe.connection)
                self._probing_since.pop(probe.connection, None)
            done.put(probe.connection)

    def _find(self, probe: ReachProbe[Any]) -> _Found:
        connection = probe.open()
        with self._lock:
            found = self._found.get(probe.connection)
            if found and found.connection == connection and self._clock() - found.at < self._fresh_seconds:
                return found
            self._probing_since[probe.connection] = time.monotonic()
        return _Found(connection, probe.probe(connection), self._clock())
