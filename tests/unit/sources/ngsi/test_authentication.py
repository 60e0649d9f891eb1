"""Access tokens: asked for, sent, renewed, and never shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import httpx
import pytest

from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.http.connection import BrokerConnection, ConnectionFields, broker_connection, secrets
from contexture.sources.http.tokens import TokenRequest
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client

SECRET = "s3cr3t-77"
TOKEN_URL = "http://idm:3000/oauth2/token"
OAUTH2 = TokenRequest("client_credentials", TOKEN_URL, client_id="me", client_secret=SECRET, scope="read")


@dataclass
class Site:
    """A token service that numbers its tokens, and a broker that takes the newest only."""

    lifetime_seconds: float = 100.0
    now: float = 0.0
    statuses: list[int] = field(default_factory=list)
    tokens: list[httpx.Request] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    refused_once: bool = False

    def handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "idm":
            self.tokens.append(request)
            if self.statuses:
                return httpx.Response(self.statuses.pop(0), text=SECRET)
            name = f"token{len(self.tokens)}"
            if request.url.path == "/v1/auth/tokens":
                ends = (datetime.now(UTC) + timedelta(seconds=self.lifetime_seconds)).isoformat()
                return httpx.Response(201, json={"token": {"expires_at": ends}}, headers={"X-Subject-Token": name})
            return httpx.Response(200, json={"access_token": name, "expires_in": self.lifetime_seconds})
        self.asked.append(request.headers.get("x-auth-token") or request.headers.get("authorization", ""))
        if self.refused_once:
            self.refused_once = False
            return httpx.Response(401)
        return httpx.Response(200, json=[])

    def broker(self, grant: TokenRequest) -> NgsiV2Client:
        def sleep(seconds: float) -> None:
            self.now += seconds

        return NgsiV2Client(
            BrokerConnection("http://broker:1026", grant=grant),
            "city",
            budget=RetryBudget(attempts=3, sleep=sleep, clock=lambda: self.now),
            transport=httpx.MockTransport(self.handle),
        )


def test_client_credentials_give_a_bearer_token_that_is_kept_while_it_is_good() -> None:
    site = Site()
    broker = site.broker(OAUTH2)
    broker.probe()
    broker.probe()
    assert site.asked == ["Bearer token1", "Bearer token1"]
    assert parse_qs(site.tokens[0].content.decode()) == {"grant_type": ["client_credentials"], "scope": ["read"]}
    assert site.tokens[0].headers["authorization"] == "Basic bWU6czNjcjN0LTc3"


@pytest.mark.parametrize(("seconds", "tokens"), [(89, 1), (91, 2)])
def test_a_token_is_renewed_before_it_ends(seconds: int, tokens: int) -> None:
    site = Site(lifetime_seconds=100)
    broker = site.broker(OAUTH2)
    broker.probe()
    site.now += seconds
    broker.probe()
    assert len(site.tokens) == tokens


def test_a_token_that_is_refused_is_renewed_once() -> None:
    site = Site(refused_once=True)
    site.broker(OAUTH2).probe()
    assert site.asked == ["Bearer token1", "Bearer token2"]


def test_a_new_token_that_is_refused_too_is_a_configuration_error() -> None:
    asked: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        answer = {"access_token": "t", "expires_in": 60}
        return httpx.Response(200, json=answer) if request.url.host == "idm" else httpx.Response(401)

    connection = BrokerConnection("http://broker:1026", grant=OAUTH2)
    with (
        NgsiV2Client(connection, "city", transport=httpx.MockTransport(handle)) as broker,
        pytest.raises(ConfigurationError, match="refuses the credentials of the connection"),
    ):
        broker.probe()
    assert asked == ["idm", "broker", "idm", "broker"]


def test_the_password_grant_names_client_and_user() -> None:
    site = Site()
    grant = TokenRequest("password", TOKEN_URL, client_id="app", username="ann", password=SECRET, header="X-Auth-Token")
    site.broker(grant).probe()
    assert site.asked == ["token1"]
    assert parse_qs(site.tokens[0].content.decode()) == {
        "grant_type": ["password"],
        "username": ["ann"],
        "password": [SECRET],
    }


def test_keyrock_answers_with_a_header_and_the_broker_gets_x_auth_token() -> None:
    site = Site()
    grant = TokenRequest(
        "keyrock", "http://idm:3000/v1/auth/tokens", username="ann", password=SECRET, header="X-Auth-Token"
    )
    broker = site.broker(grant)
    broker.probe()
    assert site.asked == ["token1"]
    assert json.loads(site.tokens[0].content) == {"name": "ann", "password": SECRET}
    site.now += 95
    broker.probe()
    assert site.asked == ["token1", "token2"]


def test_a_token_service_that_is_ill_is_asked_again() -> None:
    site = Site(statuses=[503, 500])
    site.broker(OAUTH2).probe()
    assert len(site.tokens) == 3


def test_a_token_service_that_stays_ill_is_a_retriable_error() -> None:
    with pytest.raises(RetriableError, match="the token service at http://idm:3000/oauth2/token responded with 503"):
        Site(statuses=[503] * 9).broker(OAUTH2).probe()


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_token_service_that_refuses_us_is_a_configuration_error_without_secrets(status: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"refuses to issue a token \({status}\)") as raised:
        Site(statuses=[status]).broker(OAUTH2).probe()
    assert SECRET not in str(raised.value)


def _answer(content: bytes) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _request: httpx.Response(200, content=content)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"access_token": 5}', b'{"access_token": "a\\nb"}', b"\xff"])
def test_an_answer_without_a_token_is_a_configuration_error(content: bytes) -> None:
    connection = BrokerConnection("http://broker:1026", grant=OAUTH2)
    with (
        NgsiV2Client(connection, "city", transport=httpx.MockTransport(_answer(content))) as broker,
        pytest.raises(ConfigurationError, match="without a token"),
    ):
        broker.probe()


def test_a_grant_survives_json_and_shows_nothing() -> None:
    connection = BrokerConnection("http://broker:1026", grant=OAUTH2, certificate="c.pem", certificate_password=SECRET)
    assert BrokerConnection.from_json(connection.to_json()) == connection
    assert SECRET not in repr(connection)


def test_a_certificate_that_is_not_there_is_a_configuration_error_without_secrets() -> None:
    with pytest.raises(ConfigurationError, match=r"no/such\.pem") as raised:
        BrokerConnection("https://b", certificate="no/such.pem", certificate_password=SECRET).ssl_context()
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, None),
        ({"authentication": "basic"}, None),
        (
            {"authentication": "oauth2", "token_url": TOKEN_URL},
            TokenRequest("client_credentials", TOKEN_URL, client_id="me", client_secret=SECRET),
        ),
        (
            {"authentication": "oauth2", "token_url": TOKEN_URL, "client_id": "a", "client_secret": "b", "scope": "c"},
            TokenRequest("client_credentials", TOKEN_URL, client_id="a", client_secret="b", scope="c"),
        ),
        (
            {
                "authentication": "oauth2",
                "token_url": TOKEN_URL,
                "username": "ann",
                "user_password": "p",
                "token_header": "X-Auth-Token",
            },
            TokenRequest("password", TOKEN_URL, "me", SECRET, "ann", "p", header="X-Auth-Token"),
        ),
        (
            {"authentication": "keyrock", "token_url": TOKEN_URL},
            TokenRequest("keyrock", TOKEN_URL, username="me", password=SECRET, header="X-Auth-Token"),
        ),
    ],
)
def test_the_extra_of_a_connection_says_how_tokens_are_come_by(
    extra: Mapping[str, object], expected: TokenRequest | None
) -> None:
    fields = ConnectionFields("broker", login="me", password=SECRET, extra=extra)
    found = broker_connection("city", fields)
    assert found.grant == expected
    assert ("Authorization" in found.headers) is (expected is None)
    assert secrets(found)
    assert SECRET not in repr(found) + repr(fields)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"authentication": "digest"}, "unknown authentication"),
        ({"authentication": "oauth2"}, "not an HTTP address"),
        ({"authentication": "keyrock", "token_url": TOKEN_URL}, "needs username and password"),
        ({"headers": ["a"]}, "not a mapping"),
        ({"timeout_seconds": "soon"}, "not a number"),
    ],
)
def test_what_can_not_be_used_is_said(extra: Mapping[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        broker_connection("city", ConnectionFields("broker", extra=extra))


def test_a_broker_that_names_the_wait_is_waited_for_that_long() -> None:
    site = Site()
    answers = [httpx.Response(429, headers={"Retry-After": "30"}), httpx.Response(200, json=[])]
    slept: list[float] = []
    broker = NgsiV2Client(
        BrokerConnection("http://broker:1026"),
        "city",
        budget=RetryBudget(sleep=slept.append, clock=lambda: site.now),
        transport=httpx.MockTransport(lambda _request: answers.pop(0)),
    )
    broker.probe()
    assert len(slept) == 1
    assert 30 <= slept[0] <= 32
