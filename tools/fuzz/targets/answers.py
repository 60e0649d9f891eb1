"""What a context broker answers, as the clients read it: status, headers, and pages of entities."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count, islice

import httpx

from contexture.errors import ContextureError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.tokens import TokenRequest, Tokens
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.history import HistoryInterval, NgsiLdHistoryClient
from contexture.sources.ngsi.ngsi_ld import NgsiLdClient
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.query import EntityQuery
from tools.fuzz.target import Target, request, taken_apart
from tools.fuzz.targets.broker import ENTITY, HISTORY, LINKED_ENTITY

_CONNECTION = BrokerConnection("http://broker:1026", timeout_seconds=5.0)
_SECONDS = count()
# A second passes with each look at the clock, so that what only the deadline ends comes to its end.
PATIENCE = RetryBudget(
    attempts=2,
    first_wait_seconds=0.0,
    longest_wait_seconds=0.0,
    sleep=lambda _: None,
    clock=lambda: float(next(_SECONDS)),
)
_DEADLINE_SECONDS = 600.0
_START = datetime(2026, 1, 1, tzinfo=UTC)
DATE = {"Date": "Thu, 01 Jan 2026 12:00:00 GMT", "Content-Type": "application/json"}
_COUNTED = {**DATE, "Fiware-Total-Count": "2", "NGSILD-Results-Count": "2"}
_PAGES = 20


def answering(data: bytes) -> httpx.MockTransport:
    """Answers the input to every question."""
    others, headers, body = taken_apart(data)
    status = int(others[0]) if others and others[0].isdigit() and len(others[0]) == 3 else 200
    # No server can send what a client's HTTP library does not let through.
    sent = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in headers.items()
        if name.isascii() and name.isprintable() and name.lower() not in {"content-encoding", "transfer-encoding"}
    ]
    if not any(name.lower() == b"content-length" for name, _ in sent):
        sent.append((b"content-length", str(len(body)).encode()))
    # A stream, for some clients read answers piece by piece.
    return httpx.MockTransport(lambda _: httpx.Response(max(200, status), headers=sent, stream=httpx.ByteStream(body)))


def outcome(reading: object) -> object:
    """How a reading ended; only what isn't ours gets out."""
    try:
        return type(reading()).__name__  # type: ignore[operator]
    except ContextureError as error:
        if error.intent == "bug":
            raise
        return type(error).__name__


def _ngsiv2(data: bytes) -> object:
    query = EntityQuery(types=("car",), page_size=2)
    with NgsiV2Client(_CONNECTION, "vehicles", budget=PATIENCE, transport=answering(data)) as broker:
        return (
            outcome(lambda: broker.count(query)),
            outcome(lambda: broker.time_at(query, 0)),
            outcome(lambda: list(islice(broker.scan(query, deadline_seconds=_DEADLINE_SECONDS), _PAGES))),
        )


def _linked_data(data: bytes) -> object:
    query = EntityQuery(types=("car",), page_size=2)
    with NgsiLdClient(_CONNECTION, "vehicles", budget=PATIENCE, transport=answering(data)) as broker:
        return (
            outcome(lambda: broker.count(query)),
            outcome(broker.types),
            outcome(lambda: list(islice(broker.scan(query, deadline_seconds=_DEADLINE_SECONDS), _PAGES))),
        )


def _temporal(data: bytes) -> object:
    query = EntityQuery(types=("car",))
    stretch = HistoryInterval(_START, _START + timedelta(milliseconds=4))
    with NgsiLdHistoryClient(_CONNECTION, "vehicles", budget=PATIENCE, transport=answering(data)) as broker:
        return outcome(lambda: list(islice(broker.history(query, stretch, deadline_seconds=_DEADLINE_SECONDS), _PAGES)))


def _token(data: bytes) -> object:
    with httpx.Client(transport=answering(data)) as client:
        keyrock = TokenRequest("keyrock", "http://idm/v1/auth/tokens", username="u", password="p")
        plain = TokenRequest("client_credentials", "http://idm/oauth2", client_id="c", client_secret="s")
        tokens = [Tokens(grant, client, PATIENCE.clock) for grant in (keyrock, plain)]
        return tuple(outcome(each.header) for each in tokens)


def _token_inputs() -> Mapping[str, bytes]:
    ends = b'{"token":{"expires_at":"2026-01-01T01:00:00Z"}}'
    return {
        "plain": request(DATE, b'{"access_token":"abc","expires_in":3600,"token_type":"bearer"}', 200),
        "keyrock": request({**DATE, "X-Subject-Token": "abc"}, ends, 201),
    }


def _inputs() -> Mapping[str, bytes]:
    return {
        "page": request(_COUNTED, b"[" + ENTITY + b"," + ENTITY.replace(b"car1", b"car2") + b"]", 200),
        "short": request(_COUNTED, b"[" + ENTITY + b"]", 200),
        "refused": request({**DATE, "Retry-After": "3"}, b'{"error":"x"}', 503),
        "later": request({**DATE, "Retry-After": "Thu, 01 Jan 2026 12:00:03 GMT"}, b"", 429),
    }


def _linked_inputs() -> Mapping[str, bytes]:
    problem = b'{"type":"https://uri.etsi.org/ngsi-ld/errors/NonexistentTenant","title":"x"}'
    return {
        "page": request({**_COUNTED, "NGSILD-EntityMap": "urn:m:1"}, b"[" + LINKED_ENTITY + b"]", 200),
        "types": request(_COUNTED, b'{"id":"urn:t","type":"EntityTypeList","typeList":["car"]}', 200),
        "problem": request({**DATE, "Content-Length": "77"}, problem, 404),
    }


def _temporal_inputs() -> Mapping[str, bytes]:
    part = "date-time 2026-01-01T00:00:00Z-2026-01-01T00:00:01Z/5"
    return {
        "whole": request(_COUNTED, b"[" + HISTORY + b"]", 200),
        "part": request({**_COUNTED, "Content-Range": part}, b"[" + HISTORY + b"]", 206),
    }


_WORDS = (
    b"Retry-After: ",
    b"Content-Range: ",
    b"Content-Length: 99999999999999999999",
    b"Date: Fri, 31 Dec 9999 23:59:59 -0500",
    b"Date: Mon, 01 Jan 0001 00:00:00 +0500",
    b"Thu, 01 Jan 2026 12:00:00 +99999999999999",
    b"\n206\n",
    b"\n401\n",
)

TARGETS = (
    Target("ngsi-answers", "answers of an NGSIv2 broker", _ngsiv2, _inputs, "request", _WORDS),
    Target("ngsi-ld-answers", "answers of an NGSI-LD broker", _linked_data, _linked_inputs, "request", _WORDS),
    Target("tokens", "answers of a token service", _token, _token_inputs, "request", (b"expires_in", b"1e400")),
    Target("ngsi-history-answers", "answers of its temporal interface", _temporal, _temporal_inputs, "request", _WORDS),
)
