"""The test broker keeps the contract of a real one: recorded exchanges are replayed in order and answers compared.

Set NGSI_BROKER_URL to run the same against a real broker; it is used with fresh tenants. What needs the database to be
taken away is skipped there, and notifications are too unless the broker is on this machine.
"""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from contexture_sandbox.context_broker import TestBroker

SAMPLES = Path(__file__).parents[1] / "samples" / "orion"
EXCHANGES = [json.loads(line) for line in (SAMPLES / "exchanges.jsonl").read_text().splitlines()]
NOTIFICATIONS = json.loads((SAMPLES / "notifications.json").read_text())
REAL_BROKER = os.environ.get("NGSI_BROKER_URL")
ON_THIS_MACHINE = REAL_BROKER is None or "127.0.0.1" in REAL_BROKER or "localhost" in REAL_BROKER
TENANTS = {"vehicles", "city"}
RECORDED_TIME = re.compile(r"2026-11-21T05:3[89]:\d\d\.\d{3}Z")
ANY_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SUBSCRIPTION_ID = re.compile(r"[0-9a-f]{24}")
DELIBERATE = {
    1: "the build data of /version is of another program; only its form is kept",
    100: "the same, with the database gone",
}
FREE_TEXT = {
    "url": "the listener has a port of its own",
    "uptime": "time goes by",
    "lastNotification": "shown in whole seconds, which two runs need not share",
    "lastSuccess": "the same",
}


class Listener:
    """Keeps the notifications it is sent."""

    def __init__(self) -> None:
        received: list[tuple[dict[str, str], Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append(({name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/notify"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass
class Replay:
    """What the broker under test answered, and which of its times stand for which recorded ones."""

    listener: Listener
    prefix: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}_")
    answers: dict[int, httpx.Response] = field(default_factory=dict)
    times: dict[str, str] = field(default_factory=dict)

    def ask(self, client: httpx.Client, exchange: dict[str, Any]) -> None:
        request = exchange["request"]
        body = self._translated(request["body"])
        content = {"content": body} if isinstance(body, str) else {"json": body} if body is not None else {}
        answer = client.request(
            request["method"],
            request["path"],
            params=self._translated(request["params"]),
            headers=self._headers(request["headers"]),
            **content,
        )
        self.answers[exchange["n"]] = answer
        self._learn(exchange["response"]["body"], answer.json() if answer.content else "")
        time.sleep(0.002)  # the recorded writes lie in different milliseconds

    def _headers(self, recorded: dict[str, str]) -> dict[str, str]:
        service = recorded.get("Fiware-Service")
        return recorded | ({"Fiware-Service": self.prefix + service} if service in TENANTS else {})

    def _translated(self, value: Any) -> Any:
        if value is None or value == "":
            return value
        text = json.dumps(value).replace("http://127.0.0.1:5050/notify", self.listener.url)
        return json.loads(RECORDED_TIME.sub(lambda found: self.times.get(found[0], found[0]), text))

    def _learn(self, recorded: Any, answered: Any) -> None:
        if isinstance(recorded, str) and isinstance(answered, str) and RECORDED_TIME.fullmatch(recorded):
            self.times.setdefault(recorded, answered)
        elif isinstance(recorded, dict) and isinstance(answered, dict):
            for name in recorded.keys() & answered.keys():
                self._learn(recorded[name], answered[name])
        elif isinstance(recorded, list) and isinstance(answered, list):
            for one, other in zip(recorded, answered, strict=False):
                self._learn(one, other)

    def assert_same(self, recorded: Any, answered: Any, name: str = "") -> None:
        """The same JSON, member order included; recorded times stand for those of this run, one for one."""
        if name in FREE_TEXT:
            assert type(recorded) is type(answered)
        elif isinstance(recorded, dict):
            assert list(recorded) == list(answered)
            for member in recorded:
                self.assert_same(recorded[member], answered[member], member)
        elif isinstance(recorded, list):
            assert len(recorded) == len(answered)
            for one, other in zip(recorded, answered, strict=True):
                self.assert_same(one, other)
        elif isinstance(recorded, str) and RECORDED_TIME.fullmatch(recorded):
            assert answered == self.times[recorded]
            assert ANY_TIME.fullmatch(answered)
        elif isinstance(recorded, str) and SUBSCRIPTION_ID.fullmatch(recorded):
            assert SUBSCRIPTION_ID.fullmatch(answered)
        elif isinstance(recorded, str):
            assert isinstance(answered, str)
            assert answered.replace(self.prefix, "") == recorded
        else:
            assert (type(recorded), recorded) == (type(answered), answered)


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    listener = Listener()
    replayed = Replay(listener)
    try:
        with TestBroker() as broker, httpx.Client(base_url=REAL_BROKER or broker.url, trust_env=False) as client:
            for exchange in EXCHANGES:
                if exchange["n"] == 96:  # shows how the notifications went
                    _await(lambda: len(listener.received) >= len(NOTIFICATIONS))
                    broker.settle()
                if exchange["group"] == "database-down":
                    if REAL_BROKER:
                        continue
                    broker.faults.database_gone = True
                replayed.ask(client, exchange)
        yield replayed
    finally:
        listener.stop()


def _await(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline and ON_THIS_MACHINE:
        time.sleep(0.01)


def _name(exchange: dict[str, Any]) -> str:
    return f"{exchange['n']}-{exchange['group']}"


@pytest.mark.parametrize("exchange", EXCHANGES, ids=_name)
def test_answers_as_orion_did(replay: Replay, exchange: dict[str, Any]) -> None:
    answer = replay.answers.get(exchange["n"])
    if answer is None:
        pytest.skip("a real broker's database is not taken away")
    if exchange["n"] == 96 and not ON_THIS_MACHINE:
        pytest.skip("a broker elsewhere cannot send notifications to this machine")
    recorded = exchange["response"]

    assert answer.status_code == recorded["status"]
    if exchange["n"] in DELIBERATE:
        assert list(answer.json()["orion"]) == list(recorded["body"]["orion"])
        return
    replay.assert_same(recorded["body"], answer.json() if answer.content else "")
    _assert_headers(recorded["headers"], answer)


def _assert_headers(recorded: dict[str, str], answer: httpx.Response) -> None:
    # Names of headers have no case, and the recording lacks these two.
    unrecorded = {"content-length"} | ({"allow"} if answer.status_code == httpx.codes.METHOD_NOT_ALLOWED else set())
    assert {name.lower() for name in recorded} == {name.lower() for name in answer.headers} - unrecorded
    for name in ("content-type", "fiware-total-count"):
        assert answer.headers.get(name) == recorded.get(name)
    assert SUBSCRIPTION_ID.sub("?", answer.headers.get("location", "")) == (
        SUBSCRIPTION_ID.sub("?", recorded.get("location", ""))
    )


def test_headers_are_compared_without_their_case_and_a_refused_method_may_name_the_allowed_ones() -> None:
    named = [(b"Fiware-Correlator", b"c"), (b"Content-Type", b"application/json"), (b"Allow", b"GET, POST")]
    recorded = {"fiware-correlator": "r", "content-type": "application/json"}

    _assert_headers(recorded, httpx.Response(405, headers=named))

    with pytest.raises(AssertionError):
        _assert_headers(recorded, httpx.Response(404, headers=named))
    with pytest.raises(AssertionError):
        _assert_headers({**recorded, "location": "/v2"}, httpx.Response(405, headers=named))


@pytest.mark.skipif(not ON_THIS_MACHINE, reason="a broker elsewhere cannot send notifications to this machine")
@pytest.mark.parametrize("number", range(len(NOTIFICATIONS)))
def test_notifies_as_orion_did(replay: Replay, number: int) -> None:
    recorded = NOTIFICATIONS[number]
    headers, body = replay.listener.received[number]

    replay.assert_same(recorded["body"], body)
    assert headers["fiware-service"] == replay.prefix + recorded["headers"]["Fiware-Service"]
    for name in ("Fiware-Servicepath", "Content-Type", "Content-Length", "Ngsiv2-AttrsFormat", "Accept"):
        assert headers[name.lower()] == recorded["headers"][name]
    assert headers["fiware-correlator"].endswith("; cbnotif=1")


@pytest.mark.skipif(not ON_THIS_MACHINE, reason="a broker elsewhere cannot send notifications to this machine")
def test_a_notification_carries_the_correlator_of_its_request(replay: Replay) -> None:
    assert replay.listener.received[0][0]["fiware-correlator"] == (
        replay.answers[3].headers["fiware-correlator"] + "; cbnotif=1"
    )


def test_no_more_notifications_than_recorded(replay: Replay) -> None:
    assert len(replay.listener.received) == (len(NOTIFICATIONS) if ON_THIS_MACHINE else 0)
