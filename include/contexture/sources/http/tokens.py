"""Access tokens: requested when they are first needed, and again before they expire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal
from urllib.parse import urlsplit

import httpx
import msgspec

from contexture.errors import ConfigurationError, ContextureError
from contexture.sources.http.content_encoding import decoded_pieces
from contexture.sources.http.errors import RETRIED_STATUSES, BrokerUnavailableError, translate_http_error

GrantKind = Literal["client_credentials", "password", "keyrock"]
GRANTS: tuple[GrantKind, ...] = ("client_credentials", "password", "keyrock")

_NEXT_STEP = "correct the authentication in the extra of the source's connection"


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """How to request tokens that expire from a token service.

    Attributes:
        kind: `client_credentials` and `password` are OAuth2 grants (RFC 6749, 4.4 and 4.3); `keyrock` is the identity
            API of Keyrock, which takes a name and a password and responds with the header `X-Subject-Token`.
        url: of the token service.
        client_id, client_secret: of the client; sent by HTTP Basic authentication. Not used by `keyrock`.
        username, password: of the user, for `password` and `keyrock`.
        scope: requested where it is not empty (OAuth2).
        header: the header that carries the token: `Authorization` (as `Bearer ...`), or one that holds it alone, such
            as the `X-Auth-Token` of a PEP proxy.

    Raises:
        ConfigurationError: something that this kind needs is absent.
    """

    kind: GrantKind
    url: str = field(repr=False)
    client_id: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    scope: str = ""
    header: str = "Authorization"

    def __post_init__(self) -> None:
        if self.kind not in GRANTS:
            raise ConfigurationError(
                f"authentication of no known kind (known: {', '.join(GRANTS)})", next_step=_NEXT_STEP
            )
        if _scheme(self.url) not in {"http", "https"}:
            raise ConfigurationError("the token service's address is not an HTTP address", next_step=_NEXT_STEP)
        lacking = [name for name in _NEEDED[self.kind] if not getattr(self, name)]
        if lacking:
            raise ConfigurationError(
                f"authentication by {self.kind} needs {' and '.join(lacking)}",
                next_step="give them in the connection: its login and password, or its extra",
            )

    @property
    def address(self) -> str:
        """The address of the token service, without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def secrets(self) -> tuple[str, ...]:
        """Returns what must never be shown."""
        return tuple(value for value in (self.client_secret, self.password) if value)


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:  # half of an IPv6 address
        return ""


_NEEDED: dict[GrantKind, tuple[str, ...]] = {
    "client_credentials": ("client_id", "client_secret"),
    "password": ("client_id", "username", "password"),
    "keyrock": ("username", "password"),
}

_WHO = "the token service"
_LIFETIME_SECONDS = 300.0  # of a token without a lifetime of its own
_EARLY_SECONDS = 30.0
_EARLY_SHARE = 0.1
_ANSWER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Token:
    text: str = field(repr=False)
    renew_at: float


class Tokens:
    """The tokens of one grant.

    Args:
        grant: how they are requested.
        client: of the token service; the caller closes it.
        clock: seconds, monotonic.
    """

    def __init__(self, grant: TokenRequest, client: httpx.Client, clock: Callable[[], float]) -> None:
        self._grant = grant
        self._client = client
        self._clock = clock
        self._token: _Token | None = None

    def header(self) -> dict[str, str]:
        """Returns the header with a token that is valid for some time yet.

        Raises:
            BrokerUnavailableError: the token service is away or ill.
            ConfigurationError: it refuses us, or is none.
        """
        if self._token is None or self._clock() >= self._token.renew_at:
            self._token = self._fetch()
        name = self._grant.header
        return {name: f"Bearer {self._token.text}" if name.lower() == "authorization" else self._token.text}

    def invalidate(self) -> None:
        """Makes the next request fetch a new token."""
        self._token = None

    def _fetch(self) -> _Token:
        with translate_http_error(self._grant.address, _WHO), self._request() as response:
            status, body = response.status_code, self._body(response)
        if status not in {httpx.codes.OK, httpx.codes.CREATED}:
            raise self._refusal(status)
        text, seconds = _read(response.headers, body)
        if not text or not text.isascii() or not text.isprintable():
            raise ConfigurationError(
                f"what is at {self._grant.address} responds without a token",
                next_step="correct the token_url and the kind of authentication in the connection's extra",
            )
        early = min(_EARLY_SECONDS, seconds * _EARLY_SHARE)
        return _Token(text, self._clock() + max(seconds - early, 0.0))

    def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        for piece in decoded_pieces(response, f"{_WHO} at {self._grant.address}"):
            body += piece
            if len(body) > _ANSWER_BYTES:
                raise ConfigurationError(
                    f"what is at {self._grant.address} responds with more than a token ({_ANSWER_BYTES:,} bytes)",
                    next_step="correct the token_url in the connection's extra",
                )
        return bytes(body)

    def _request(self) -> AbstractContextManager[httpx.Response]:
        grant = self._grant
        if grant.kind == "keyrock":
            named = {"name": grant.username, "password": grant.password}
            return self._client.stream("POST", grant.url, json=named)
        form = {"grant_type": grant.kind} | ({"scope": grant.scope} if grant.scope else {})
        if grant.kind == "password":
            form |= {"username": grant.username, "password": grant.password}
        return self._client.stream("POST", grant.url, data=form, auth=(grant.client_id, grant.client_secret))

    def _refusal(self, status: int) -> ContextureError:
        if status in RETRIED_STATUSES:
            return BrokerUnavailableError(
                f"{_WHO} at {self._grant.address} responded with {status}",
                next_step="check the token service's log; the run is retried",
            )
        return ConfigurationError(
            f"{_WHO} at {self._grant.address} refuses to issue a token ({status})",
            next_step="correct the connection: login and password (or client_id and client_secret), token_url, scope",
        )


def _read(headers: httpx.Headers, body: bytes) -> tuple[str, float]:
    """Returns a token and its lifetime in seconds; an empty token where the response has none."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    members = answer if isinstance(answer, Mapping) else {}
    subject = headers.get("x-subject-token", "")
    if subject:
        return subject, _seconds_until(members.get("token"))
    text, seconds = members.get("access_token"), members.get("expires_in")
    try:
        lifetime = float(seconds) if isinstance(seconds, int | float | str) else _LIFETIME_SECONDS
    except (ValueError, OverflowError):
        lifetime = _LIFETIME_SECONDS
    return (text if isinstance(text, str) else ""), lifetime


def _seconds_until(described: object) -> float:
    """Returns the remaining lifetime of a token with a time of expiry (Keyrock)."""
    ends = described.get("expires_at") if isinstance(described, Mapping) else None
    try:
        moment = datetime.fromisoformat(ends) if isinstance(ends, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return _LIFETIME_SECONDS
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
