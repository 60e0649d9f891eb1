"""Who may notify."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from contexture.errors import ConfigurationError
from contexture.reception import Credentials, ThisMachineOnly


def request(server: str | None, client: str | None, **headers: str) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    ends = {
        "server": None if server is None else (server, 80),
        "client": None if client is None else (client, 40000),
    }
    return Request({"type": "http", "method": "POST", "headers": raw, **ends})


@pytest.mark.parametrize(
    ("server", "client", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("::1", "::1", True),
        ("10.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "10.0.0.2", False),
        ("localhost", "127.0.0.1", False),
        (None, "127.0.0.1", False),
        ("127.0.0.1", None, False),
    ],
)
def test_without_credentials_both_ends_have_to_be_this_machine(server, client, allowed: bool) -> None:
    assert ThisMachineOnly(without_credentials=True).allows(request(server, client)) is allowed


def test_going_without_credentials_has_to_be_said() -> None:
    with pytest.raises(ConfigurationError, match="no credentials"):
        ThisMachineOnly(without_credentials=False)


@pytest.mark.parametrize(
    "credentials",
    [
        {},
        {"tokens": [""]},
        {"tokens": ["a\nb"]},
        {"tokens": [" a"]},
        {"tokens": ["ä"]},
        {"users": [("a:b", "secret")]},
        {"users": [("a", "")]},
    ],
)
def test_credentials_that_can_not_be_sent_are_refused(credentials) -> None:
    with pytest.raises(ConfigurationError):
        Credentials.of(**credentials)


def test_a_credential_shows_nowhere() -> None:
    assert "t0ken" not in repr(Credentials.of(tokens=["t0ken"]))
    with pytest.raises(ConfigurationError) as raised:
        Credentials.of(tokens=["t0ken\n"])
    assert "t0ken" not in str(raised.value)


def test_a_second_authorization_opens_nothing() -> None:
    access = Credentials.of(tokens=["t0ken"])
    raw = [(b"authorization", b"Bearer x"), (b"authorization", b"Bearer t0ken")]
    assert not access.allows(Request({"type": "http", "method": "POST", "headers": raw}))
