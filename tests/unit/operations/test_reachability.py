"""Whether connections respond: what counts as a response, how long a result counts, and how long anyone waits."""

from __future__ import annotations

import time
from socket import create_server
from threading import Event

from contexture.errors import ConfigurationError
from contexture.kafka import ClientSettings
from contexture.operations.actions.reachability import ReachabilityCache, ReachProbe, find_reach_problem
from contexture.sources.http.connection import BrokerConnection
from contexture_sandbox.context_broker import TestBroker


def probe(result: str, *, connection: object = 1, counted: list[str] | None = None) -> ReachProbe:
    def run(_: object) -> str:
        if counted is not None:
            counted.append(result)
        return result

    return ReachProbe("c", lambda: connection, run)


def test_any_response_of_a_source_counts_and_credentials_stay_here():
    with TestBroker() as broker:
        assert find_reach_problem(BrokerConnection(broker.url, {"X-Key": "hush"}), 2.0) == ""
    away = find_reach_problem(BrokerConnection("http://127.0.0.1:9"), 2.0)
    assert "the context broker at http://127.0.0.1:9 cannot be reached" in away


def test_each_bootstrap_server_has_to_listen():
    with create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        assert find_reach_problem(ClientSettings.from_extra({"bootstrap.servers": here}), 2.0) == ""
        both = ClientSettings.from_extra({"bootstrap.servers": f"{here},127.0.0.1:9"})
        assert find_reach_problem(both, 2.0) == "127.0.0.1:9: nothing listens there"


def test_a_result_counts_for_a_while_and_only_for_the_connection_as_it_was():
    now, counted = 100.0, list[str]()
    cache = ReachabilityCache(30.0, lambda: now)
    assert cache.find_problems([probe("away", counted=counted)], 5.0) == {"c": "away"}
    assert cache.find_problems([probe("", counted=counted)], 5.0) == {"c": "away"}
    assert cache.find_problems([probe("", connection=2, counted=counted)], 5.0) == {}
    now = 131.0
    assert cache.find_problems([probe("gone", connection=2, counted=counted)], 5.0) == {"c": "gone"}
    assert counted == ["away", "", "gone"]


def test_a_connection_that_cannot_be_opened_is_a_reason_too():
    def read() -> object:
        raise ConfigurationError("there is no such connection", next_step="add it")

    found = ReachabilityCache().find_problems([ReachProbe("c", read, lambda _: "")], 5.0)
    assert found == {"c": "there is no such connection. Next: add it"}


def test_a_connection_that_takes_long_to_open_is_not_known_yet():
    release = Event()

    def open_() -> object:
        return release.wait(20)

    cache, slow = ReachabilityCache(), ReachProbe("slow", open_, lambda _: "away")
    assert cache.find_problems([slow], 0.2) == {}
    release.set()
    started = time.monotonic()
    while cache.find_problems([slow], 5.0) != {"slow": "away"}:
        assert time.monotonic() - started < 10


def test_what_takes_too_long_counts_as_no_response_until_it_ends():
    release = Event()

    def run(_: object) -> str:
        release.wait(20)
        return ""

    cache, slow = ReachabilityCache(), ReachProbe("slow", lambda: 1, run)
    started = time.monotonic()
    found = cache.find_problems([slow, probe("away")], 0.2)
    assert found == {"c": "away", "slow": "no response within 0.2 s"}
    assert time.monotonic() - started < 5
    release.set()
    while cache.find_problems([slow], 5.0):
        assert time.monotonic() - started < 10
