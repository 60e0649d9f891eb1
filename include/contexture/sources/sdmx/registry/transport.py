"""One HTTP request to a registry: three attempts, waits as the registry requests, the body streamed into a file."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx

from contexture.errors import ConfigurationError, ContextureError
from contexture.sources.http.connection import HttpConnection
from contexture.sources.http.content_encoding import (
    BrokenBodyError,
    CodingRefusedError,
    decode_content,
    decoded_pieces,
    limit_size,
)
from contexture.sources.http.errors import (
    RETRIED_STATUSES,
    BrokerUnavailableError,
    IncompleteReplyError,
    PageTimeoutError,
    RegistryUnavailableError,
    ReplyTooLargeError,
    TokenRefusedError,
    retry_after_seconds,
)
from contexture.sources.http.transport import Given, HttpClient, RetryBudget, date_of
from contexture.sources.sdmx.registry.connection import RegistryConnection
from contexture.sources.sdmx.registry.interface import ANY, StructureQuery

OK, NO_CONTENT, NOT_MODIFIED, BAD_REQUEST, NOT_FOUND, NOT_IMPLEMENTED = 200, 204, 304, 400, 404, 501
FORMAT_REFUSED = frozenset({406, 415})
ANSWERS = frozenset({OK, NO_CONTENT, NOT_MODIFIED, BAD_REQUEST, NOT_FOUND, NOT_IMPLEMENTED, *FORMAT_REFUSED})
"""Statuses that say something about what was requested; every other one is about us or the registry's health."""

_ERROR_ELEMENT = re.compile(rb"<(?:\w{1,40}:)?Error[\s>]")
_SCHEMAS = b"www.sdmx.org/resources/sdmxml/schemas"
_ERROR_DOCUMENT = re.compile(rb'"errors"\s*:\s*\[')


def is_error_message(media_type: str, text: bytes) -> bool:
    """Whether a refusal is an error message of SDMX, in XML or JSON: no proxy and no empty server sends one."""
    if "sdmx" in media_type.lower() and "error" in media_type.lower():
        return True
    element = _ERROR_ELEMENT.search(text)
    if element is not None and text.find(_SCHEMAS, element.end()) >= 0:
        return True
    return "json" in media_type.lower() and _ERROR_DOCUMENT.search(text) is not None


def registry_error(connection: HttpConnection, response: httpx.Response) -> ContextureError:
    """Returns the error of a status that says nothing about what was requested."""
    status, where = response.status_code, f"{connection.WHO} at {connection.address}"
    if status in {401, 403}:
        kind = TokenRefusedError if status == httpx.codes.UNAUTHORIZED else ConfigurationError
        return kind(
            f"{where} refuses the credentials of the connection ({status})",
            next_step="put valid credentials into its connection and give them the right to read, or take them out to "
            "read what is public",
        )
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        return ReplyTooLargeError(
            f"{where} refuses the request, because its response is too large (413)",
            next_step="raise the registry's limit, or select less",
        )
    if 300 <= status < 400:
        return ConfigurationError(
            f"{where} redirects to another address ({status})",
            next_step="enter that address in its connection",
        )
    if status in RETRIED_STATUSES or status > 500:
        return RegistryUnavailableError(
            f"{where} responded with {status}",
            next_step="check the registry's log and its database; the run is retried",
            retry_after_seconds=retry_after_seconds(response.headers.get("retry-after", "")),
        )
    return ConfigurationError(
        f"what is at {connection.address} does not respond as a structure registry ({status})",
        next_step="correct the address in its connection: the part before /structure or /sdmx/v2, and its api",
    )


ATTEMPTS = 3
_ERROR_BYTES = 1 << 16
_SLOW_BYTES = 4096
_CONTENT = frozenset({httpx.codes.OK})


def registry_budget() -> RetryBudget:
    """Returns a budget of three attempts for registry faults, with waits of up to half a minute between them."""
    return RetryBudget(attempts=ATTEMPTS, first_wait_seconds=1.0, longest_wait_seconds=30.0)


@dataclass(frozen=True, slots=True)
class StructureRequest:
    """A GET. `path`: with its parameters; `accept`: the media type; `since`: for If-Modified-Since."""

    path: str
    accept: str
    since: str | None = None


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A response; only the body of status 200 is in the file.

    Attributes:
        status: HTTP status.
        headers: of the response.
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
        return str(self.headers.get("content-type", ""))


class StructureDownloads:
    """Downloads from one registry, over one connection that stays open."""

    def __init__(
        self,
        connection: RegistryConnection,
        budget: RetryBudget | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = connection
        self.budget = budget or registry_budget()
        self._client = HttpClient(connection, self.budget, transport)

    def close(self) -> None:
        self._client.close()

    def retrying(self, call: Callable[[], Given]) -> Given:
        """Returns the result of a call, repeated while the registry is away or ill.

        Raises:
            RegistryUnavailableError: it still was at the last attempt.
        """
        return self._client.retrying(call, RegistryUnavailableError)

    def fetch(self, request: StructureRequest, into: Path) -> DownloadedFile:
        """Returns the response of one attempt, its body in the file.

        Raises:
            RegistryUnavailableError: the registry is away or ill, or its response breaks off.
            ReplyTooLargeError: the response is larger than allowed.
            ConfigurationError: it refuses us, or is none.
        """
        return self._client.with_new_token(lambda: self._fetch(request, into))

    def status(self, request: StructureRequest) -> int:
        """Returns the status of the response to one attempt, without its body."""
        with self._responding(request) as response:
            return response.status_code

    def _fetch(self, request: StructureRequest, into: Path) -> DownloadedFile:
        with self._responding(request) as response:
            if response.status_code not in ANSWERS:
                raise registry_error(self._connection, response)
            is_content = response.status_code in _CONTENT
            size = self._write(response, into) if is_content else 0
            text = b"" if is_content else self._error_text(response)
            now = datetime.now(UTC)
            return DownloadedFile(
                response.status_code,
                response.headers,
                size,
                now,
                date_of(response.headers) or now,
                is_error_message(response.headers.get("content-type", ""), text),
            )

    @contextmanager
    def _responding(self, request: StructureRequest) -> Iterator[httpx.Response]:
        try:
            with self._client.stream("GET", request.path, _headers(request)) as response:
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
        pieces = decode_content(self._check_flow(response.iter_raw()), encoding, who)
        size = 0
        try:
            with into.open("wb") as stream:
                for piece in limit_size(pieces, self._connection.reply_bytes, self._connection):
                    size += stream.write(piece)
        except BaseException as error:
            into.unlink(missing_ok=True)
            if isinstance(error, CodingRefusedError | BrokenBodyError):
                raise IncompleteReplyError(error.message, next_step=error.next_step) from None
            raise
        return size

    def _check_flow(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Passes pieces on unless they come too slowly, because httpx's timeout is that of a single one."""
        clock, seconds = self.budget.clock, self._connection.timeout_seconds
        since, size = clock(), 0
        for piece in pieces:
            yield piece
            size += len(piece)
            if size >= _SLOW_BYTES:
                since, size = clock(), 0
            elif clock() - since > seconds:
                raise RegistryUnavailableError(
                    f"{self._connection.WHO} at {self._connection.address} sends too slowly",
                    next_step="check its log and the network before it; the run is retried",
                )

    def _error_text(self, response: httpx.Response) -> bytes:
        text = b""
        # An error message that cannot be decoded is none; the status is what counts then.
        with suppress(CodingRefusedError, BrokenBodyError):
            for piece in decoded_pieces(response, self._connection.WHO):
                text += piece[:_ERROR_BYTES]
                if len(text) >= _ERROR_BYTES:
                    break
        return text


def _headers(request: StructureRequest) -> dict[str, str]:
    since = {"if-modified-since": request.since} if request.since else {}
    # FMR: * is no filter, else names come in one language.
    return {"accept": request.accept, "accept-language": "*", **since}


SMALL = StructureQuery("AgencyScheme")
"""Something that most registries hold, and little of it."""
_STRUCTURES = (b"Structure", b'"data"', b'"meta"', b'"structures"')
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The response to a request that checks an address.

    Attributes:
        status: of the response.
        body: its beginning, where it is 200.
        is_registrys: a refusal that is an error message of SDMX.
    """

    status: int
    body: bytes = b""
    is_registrys: bool = False

    @property
    def has_structures(self) -> bool:
        """Whether it looks like a structure message, and not like the page of a web server."""
        # Written in UTF-16, it has the same letters with zeros between them.
        body = self.body.replace(b"\0", b"")
        is_page = b"<html" in body[:1024].lower()
        return self.status == OK and not is_page and any(mark in body for mark in _STRUCTURES)


def probe_address(transport: StructureDownloads, path: str, accept: str = f"{ANY}/{ANY}") -> ProbeResult:
    """Returns the response to one attempt of a small request.

    Raises:
        RegistryUnavailableError: nothing responds, or it is ill.
        ConfigurationError: it refuses us, or is no registry.
    """
    with tempfile.TemporaryDirectory(prefix="contexture-probe-") as folder:
        into = Path(folder) / "answer"
        fetched = transport.fetch(StructureRequest(path, accept), into)
        if not fetched.size:
            return ProbeResult(fetched.status, is_registrys=fetched.is_registrys)
        with into.open("rb") as stream:
            return ProbeResult(fetched.status, stream.read(_HEAD_BYTES))
