"""One question to a registry: three tries, waits as asked, the answer streamed into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx
import tenacity

from contexture.ngsi.answers import BrokerUnavailableError, PageTimeoutError, TokenRefusedError, translated
from contexture.ngsi.content_encoding import ACCEPTED, BrokenBodyError, CodingRefusedError, decoded_pieces
from contexture.ngsi.tokens import Tokens
from contexture.ngsi.transport import Patience, date_of, wire
from contexture.sdmx.registries.answers import ANSWERS, is_error_message, refusal
from contexture.sdmx.registries.connection import RegistryConnection
from contexture.sdmx.registries.decoding import bounded, unpacked
from contexture.sdmx.registries.errors import RegistryUnavailableError

ATTEMPTS = 3
_CONNECT_SECONDS = 10.0
_ERROR_BYTES = 1 << 16
_DRIP_BYTES = 4096
_CONTENT = frozenset({httpx.codes.OK})
Given = TypeVar("Given")


def registry_patience() -> Patience:
    """Three tries for registry faults, with waits of up to half a minute between them."""
    return Patience(attempts=ATTEMPTS, first_wait_seconds=1.0, longest_wait_seconds=30.0)


@dataclass(frozen=True, slots=True)
class Question:
    """A GET. `path`: with its parameters; `accept`: the media type; `since`: for If-Modified-Since."""

    path: str
    accept: str
    since: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer; only that of status 200 is in the file.

    Attributes:
        status: HTTP status.
        headers: of the answer.
        size: bytes in the file.
        received_at: when the last of them came.
        registry_time: its Date header, else `received_at`.
        is_registrys: whether a refusal is an SDMX error message, and so the registry's own.
    """

    status: int
    headers: httpx.Headers = field(repr=False)
    size: int
    received_at: datetime
    registry_time: datetime
    is_registrys: bool = False

    @property
    def media_type(self) -> str:
        """What the answer says that it is."""
        return str(self.headers.get("content-type", ""))


class Transport:
    """Asks one registry, over one connection that stays open."""

    def __init__(
        self,
        connection: RegistryConnection,
        patience: Patience | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = connection
        self.patience = patience or registry_patience()
        seconds = connection.timeout_seconds
        with translated(connection.address, connection.WHO):
            settings: dict[str, Any] = {
                "timeout": httpx.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds)),
                "verify": connection.trust(),
                "transport": transport,
                "limits": httpx.Limits(max_connections=1, max_keepalive_connections=1),
                "trust_env": not connection.is_loopback,
            }
            self._client = httpx.Client(base_url=connection.base_url, headers=wire(connection.headers), **settings)
        self._token_client = (
            httpx.Client(headers={"accept-encoding": ACCEPTED}, **settings) if connection.grant else None
        )
        self._tokens = None
        if connection.grant and self._token_client:
            self._tokens = Tokens(connection.grant, self._token_client, self.patience.clock)

    def close(self) -> None:
        """Gives the connections back."""
        self._client.close()
        if self._token_client:
            self._token_client.close()

    def patiently(self, call: Callable[[], Given]) -> Given:
        """What the call gives, tried again while the registry is away or ill.

        Raises:
            RegistryUnavailableError: it still was at the last try.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(RegistryUnavailableError),
            wait=self.patience.wait,
            stop=tenacity.stop_after_attempt(self.patience.attempts),
            sleep=self.patience.sleep,
            reraise=True,
        )
        return retrying(call)

    def fetch(self, question: Question, into: Path) -> Fetched:
        """The answer, its body in the file; tried once.

        Raises:
            RegistryUnavailableError: the registry is away or ill, or its answer breaks off.
            ReplyTooLargeError: the answer is larger than allowed.
            ConfigurationError: it refuses us, or is none.
        """
        try:
            return self._fetch(question, into)
        except TokenRefusedError:
            if self._tokens is None:
                raise
        # A token may end before its time: once more with a new one.
        self._tokens.forget()
        return self._fetch(question, into)

    def status(self, question: Question) -> int:
        """The status of the answer, without its body; tried once."""
        with self._asked(question) as response:
            return response.status_code

    def _fetch(self, question: Question, into: Path) -> Fetched:
        with self._asked(question) as response:
            if response.status_code not in ANSWERS:
                raise refusal(self._connection, response)
            is_content = response.status_code in _CONTENT
            size = self._write(response, into) if is_content else 0
            words = b"" if is_content else self._words(response)
            now = datetime.now(UTC)
            return Fetched(
                response.status_code,
                response.headers,
                size,
                now,
                date_of(response.headers) or now,
                is_error_message(response.headers.get("content-type", ""), words),
            )

    @contextmanager
    def _asked(self, question: Question) -> Iterator[httpx.Response]:
        connection = self._connection
        try:
            with translated(connection.address, connection.WHO):
                headers = _headers(question) | (self._tokens.header() if self._tokens else {})
                with self._client.stream("GET", question.path, headers=wire(headers)) as response:
                    yield response
        except (BrokerUnavailableError, PageTimeoutError) as error:
            raise RegistryUnavailableError(
                error.message,
                next_step="start the registry, or correct the host, port and timeout_seconds of its connection; the "
                "run is retried",
                **error.context,
            ) from error

    def _write(self, response: httpx.Response, into: Path) -> int:
        encoding = response.headers.get("content-encoding", "")
        who = f"{self._connection.WHO} at {self._connection.address}"
        pieces = unpacked(self._flowing(response.iter_raw()), encoding, who)
        size = 0
        try:
            with into.open("wb") as stream:
                for piece in bounded(pieces, self._connection.reply_bytes, self._connection):
                    size += stream.write(piece)
        except BaseException:
            into.unlink(missing_ok=True)
            raise
        return size

    def _flowing(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces, as long as they don't drip: httpx's time is that of a single one."""
        clock, seconds = self.patience.clock, self._connection.timeout_seconds
        since, size = clock(), 0
        for piece in pieces:
            yield piece
            size += len(piece)
            if size >= _DRIP_BYTES:
                since, size = clock(), 0
            elif clock() - since > seconds:
                raise RegistryUnavailableError(
                    f"{self._connection.WHO} at {self._connection.address} only drips",
                    next_step="look into its log and at the network before it; the run is retried",
                )

    def _words(self, response: httpx.Response) -> bytes:
        words = b""
        # An error message that cannot be decoded is none; the status is what counts then.
        with suppress(CodingRefusedError, BrokenBodyError):
            for piece in decoded_pieces(response, self._connection.WHO):
                words += piece[:_ERROR_BYTES]
                if len(words) >= _ERROR_BYTES:
                    break
        return words


def _headers(question: Question) -> dict[str, str]:
    since = {"if-modified-since": question.since} if question.since else {}
    # FMR: * is no filter, else names come in one language.
    return {"accept": question.accept, "accept-language": "*", "accept-encoding": ACCEPTED, **since}
