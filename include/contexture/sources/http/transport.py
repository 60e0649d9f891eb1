"""The HTTP client of all sources, and one request to a context broker: retries, and limits on slow responses."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypedDict, TypeVar

import httpx
import tenacity

from contexture.errors import RetriableError
from contexture.sources.http.connection import BrokerConnection, HttpConnection
from contexture.sources.http.content_encoding import ACCEPTED, decoded_pieces
from contexture.sources.http.errors import (
    BrokerUnavailableError,
    PageTooLargeError,
    TokenRefusedError,
    page_timeout,
    problem_named,
    refusal_error,
    translate_http_error,
)
from contexture.sources.http.tokens import Tokens

_CONNECT_SECONDS = 10.0
_CODINGS = {"accept-encoding": ACCEPTED}


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """How often and how long a request to a source is repeated.

    Attributes:
        attempts: requests in all, before a broker that is away is reported.
        first_wait_seconds, longest_wait_seconds: bounds of the waits between them, doubled each time, with jitter.
        longest_asked_wait_seconds: bound of a wait that the broker itself requests (Retry-After).
        page_bytes: the largest response that is read into memory.
        pause_seconds: how long a walk waits between two pages.
    """

    attempts: int = 5
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 10.0
    longest_asked_wait_seconds: float = 120.0
    page_bytes: int = 64 * 1024 * 1024
    pause_seconds: float = 0.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def wait(self, state: tenacity.RetryCallState) -> float:
        """Returns our own wait, or a longer one that the source requests and a little more, as all clients get it."""
        own = tenacity.wait_random_exponential(self.first_wait_seconds, self.longest_wait_seconds)(state)
        error = state.outcome.exception() if state.outcome else None
        asked = error.context.get("retry_after_seconds") if isinstance(error, RetriableError) else None
        if not isinstance(asked, float) or not asked:
            return own
        return max(own, min(asked, self.longest_asked_wait_seconds) + own / 10)


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A whole response of status 200. `received_at`: when its last byte came. `broker_time`: its Date header.

    `is_partial`: it was a 206, which only a request that takes parts accepts.
    """

    body: bytes
    headers: httpx.Headers
    received_at: datetime
    broker_time: datetime
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that changes nothing, so that it may be repeated. `takes_parts`: a 206 is a valid response too."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    parameters: Mapping[str, str]
    body: bytes | None = None
    takes_parts: bool = False


Given = TypeVar("Given")


class _ClientSettings(TypedDict):
    """What the client of a source and that of its token service have in common."""

    timeout: httpx.Timeout
    verify: bool | ssl.SSLContext
    transport: httpx.BaseTransport | None
    limits: httpx.Limits


class HttpClient:
    """One connection to one source that stays open, with the credentials of its `HttpConnection`."""

    def __init__(
        self, connection: HttpConnection, budget: RetryBudget, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._connection = connection
        self.budget = budget
        seconds = connection.timeout_seconds
        with translate_http_error(connection.address, connection.WHO):
            settings: _ClientSettings = {
                "timeout": httpx.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds)),
                "verify": connection.ssl_context(),
                "transport": transport,
                # One request at a time, so that no more requests are in flight than there are readers.
                "limits": httpx.Limits(max_connections=1, max_keepalive_connections=1),
            }
            self._client = httpx.Client(
                base_url=connection.base_url,
                headers=wire(dict(connection.headers) | _CODINGS),
                trust_env=not connection.is_loopback,
                **settings,
            )
        self._token_client = httpx.Client(headers=_CODINGS, **settings) if connection.grant else None
        self._tokens = None
        if connection.grant and self._token_client:
            self._tokens = Tokens(connection.grant, self._token_client, budget.clock)

    def close(self) -> None:
        self._client.close()
        if self._token_client:
            self._token_client.close()

    def retrying(self, call: Callable[[], Given], on: type[Exception], deadline: float | None = None) -> Given:
        """Returns the result of a call, repeated on errors of one class.

        Args:
            deadline: a moment of the clock of `RetryBudget` after which nothing is repeated.

        Raises:
            Exception: of that class, when the last attempt raised it too.
        """
        budget = self.budget
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(on),
            wait=budget.wait,
            stop=lambda state: state.attempt_number >= budget.attempts or self.is_over(deadline, state.upcoming_sleep),
            sleep=budget.sleep,
            reraise=True,
        )
        return retrying(call)

    def with_new_token(self, call: Callable[[], Given]) -> Given:
        """Returns the result of a call, repeated with a new token where the token was refused: it may expire early."""
        try:
            return call()
        except TokenRefusedError:
            if self._tokens is None:
                raise
        self._tokens.invalidate()
        return call()

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        parameters: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Iterator[httpx.Response]:
        """Sends a request with our credentials, and yields the response before its body is read.

        Raises:
            ContextureError: see `contexture.sources.http.errors.translate_http_error`.
        """
        with translate_http_error(self._connection.address, self._connection.WHO):
            own = dict(headers) | (self._tokens.header() if self._tokens else {})
            with self._client.stream(method, path, headers=wire(own), params=parameters, content=body) as response:
                yield response

    def is_over(self, deadline: float | None, seconds_ahead: float = 0.0) -> bool:
        """Whether a deadline has passed, or will have in so many seconds."""
        return deadline is not None and self.budget.clock() + seconds_ahead >= deadline


class HttpTransport:
    """Sends requests to one context broker."""

    def __init__(
        self, connection: BrokerConnection, budget: RetryBudget, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._address = connection.address
        self._seconds = connection.timeout_seconds
        self._budget = budget
        self._client = HttpClient(connection, budget, transport)

    def close(self) -> None:
        self._client.close()

    def get(
        self, path: str, headers: Mapping[str, str], parameters: Mapping[str, str], deadline: float | None = None
    ) -> HttpResponse:
        """Returns the whole response to a GET request; see `send`."""
        return self.send(HttpRequest("GET", path, headers, parameters), deadline)

    def pause(self, deadline: float) -> None:
        """Waits for the pause between two pages, but not beyond the deadline."""
        seconds = min(self._budget.pause_seconds, deadline - self._budget.clock())
        if seconds > 0:
            self._budget.sleep(seconds)

    def send(self, request: HttpRequest, deadline: float | None = None) -> HttpResponse:
        """Returns the whole response.

        Args:
            deadline: a moment of the clock of `RetryBudget` after which nothing is repeated.

        Raises:
            ContextureError: see `contexture.sources.http.errors`.
        """
        return self._client.retrying(lambda: self._attempt(request, deadline), BrokerUnavailableError, deadline)

    def _attempt(self, request: HttpRequest, deadline: float | None) -> HttpResponse:
        if self._client.is_over(deadline):
            raise RetriableError(
                f"reading the context broker at {self._address} took longer than the publication allows",
                next_step="raise source.walk_deadline_seconds, or narrow the selection; the run is retried",
            )
        return self._client.with_new_token(lambda: self._send(request))

    def _send(self, request: HttpRequest) -> HttpResponse:
        stream = self._client.stream(
            request.method, request.path, request.headers, dict(request.parameters), request.body
        )
        with stream as response:
            is_part = request.takes_parts and response.status_code == httpx.codes.PARTIAL_CONTENT
            if response.status_code != httpx.codes.OK and not is_part:
                # Only NGSI-LD's problems have names, for which the response is read.
                problem = problem_named(response) if request.path.startswith("/ngsi-ld") else ""
                raise refusal_error(self._address, response, request.parameters, path=request.path, problem=problem)
            return self._read(response)

    def _read(self, response: httpx.Response) -> HttpResponse:
        # httpx's timeouts are per piece: a broker that sends slowly could make a page take any time.
        over = self._budget.clock() + self._seconds
        body = bytearray()
        for piece in decoded_pieces(response, f"the context broker at {self._address}"):
            body += piece
            if len(body) > self._budget.page_bytes:
                raise _too_large(self._address, self._budget.page_bytes)
            if self._budget.clock() > over:
                raise page_timeout(self._address)
        received_at = datetime.now(UTC)
        is_partial = response.status_code == httpx.codes.PARTIAL_CONTENT
        return HttpResponse(
            bytes(body), response.headers, received_at, date_of(response.headers) or received_at, is_partial
        )


def wire(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    """Returns headers as bytes, because httpx would take texts for ASCII."""
    return {name.lower().encode(): value.encode() for name, value in headers.items()}


def date_of(headers: httpx.Headers) -> datetime | None:
    """Returns the Date header of a response; None where it has none."""
    try:
        date = parsedate_to_datetime(headers.get("date", ""))
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, OverflowError):  # also beyond the years that there are
        return None


def _too_large(address: str, limit_bytes: int) -> PageTooLargeError:
    return PageTooLargeError(
        f"a response of the context broker at {address} is larger than {limit_bytes} bytes",
        next_step="exclude the entity from the selection (source.types, source.query), or make it smaller",
    )
