"""The errors of HTTP sources: what a status, a refusal or a missing response means for a run."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec

from contexture.errors import ConfigurationError, ContextureError, RejectedError, RetriableError

RETRIED_STATUSES = frozenset({429, 500, 502, 503, 504})
_UNAUTHORISED = frozenset({401, 403})
_NOT_OFFERED = frozenset({404, 405, 501})
BROKER = "the context broker"
_ALERTS_ABOUT_OURS = tuple(
    f"_ALERT_{name}"
    for name in (
        "CERTIFICATE_REQUIRED",
        "BAD_CERTIFICATE",
        "UNSUPPORTED_CERTIFICATE",
        "CERTIFICATE_REVOKED",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_UNKNOWN",
        "UNKNOWN_CA",
        "DECRYPT_ERROR",  # its signature is not that of the authority it names
    )
)
_PROBLEMS = "https://uri.etsi.org/ngsi-ld/errors/"
_PROBLEM_BYTES = 65_536


class BrokerUnavailableError(RetriableError):
    """The broker was away or ill for a moment: a request soon after may succeed."""


class TokenRefusedError(ConfigurationError):
    """The broker does not accept our credentials (401): a new token may be accepted, if they are tokens."""


class NotOfferedError(ConfigurationError):
    """What was requested is not offered there (404, 405, 501, or NGSI-LD's OperationNotSupported)."""


class PageTimeoutError(RetriableError):
    """The broker took too long over one page: a smaller page may pass."""


class PageTooLargeError(RejectedError):
    """A page is larger than what is read at once: a smaller page may pass."""


@contextmanager
def translate_http_error(address: str, who: str = BROKER) -> Iterator[None]:
    """Turns httpx's exceptions into ours, once.

    Args:
        address: of the source, without secrets.
        who: what it is, for messages.

    Raises:
        BrokerUnavailableError: no connection, or it broke.
        PageTimeoutError: there is a connection but the response did not come in time.
        ConfigurationError: the address, a header or a certificate is not usable.
    """
    try:
        yield
    except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
        raise page_timeout(address, who) from error
    except httpx.TransportError as error:
        raise _transport_error(address, error, who) from error
    except (httpx.InvalidURL, httpx.DecodingError, httpx.StreamError, ValueError) as error:
        # `from None`: these may quote a header or an address with a password.
        raise ConfigurationError(
            f"the request to {who} at {address} cannot be made ({type(error).__name__})",
            next_step="correct the connection's address and headers, and what the publication selects",
        ) from None


def page_timeout(address: str, who: str = BROKER) -> PageTimeoutError:
    """Returns the error of a response that did not come within the connection's time."""
    return PageTimeoutError(
        f"{who} at {address} did not respond in time",
        next_step="raise timeout_seconds of the connection, or lower page_size of the source; the run is retried",
    )


def _transport_error(address: str, error: httpx.TransportError, who: str) -> ContextureError:
    if _is_certificate_refused(error):
        return ConfigurationError(
            f"the certificate of {who} at {address} is not trusted",
            next_step="put the bundle of its authority into the connection's verify",
        )
    if _is_ours_wanted(error):
        return ConfigurationError(
            f"{who} at {address} requires a client certificate that it trusts",
            next_step="put one that its authority signed, and is valid today, into the connection's certificate and "
            "certificate_key",
        )
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        return ConfigurationError(
            f"the request to {who} at {address} is not HTTP ({type(error).__name__})",
            next_step="correct the connection's address and headers, and what the publication selects",
        )
    return BrokerUnavailableError(
        f"{who} at {address} cannot be reached ({type(error).__name__})",
        next_step="start the broker or correct the host and port of its connection; the run is retried",
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_certificate_refused(error: BaseException) -> bool:
    return any(
        isinstance(each, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(each)
        for each in _causes(error)
    )


def _is_ours_wanted(error: BaseException) -> bool:
    """Whether the other side ended the handshake because of our certificate, or for want of one (RFC 8446, 6.2)."""
    return any(
        isinstance(each, ssl.SSLError) and any(alert in str(each.reason) for alert in _ALERTS_ABOUT_OURS)
        for each in _causes(error)
    )


class _Problem(msgspec.Struct):
    type: str = ""


def problem_named(response: httpx.Response) -> str:
    """Returns the name of the NGSI-LD problem (RFC 7807) of a response, such as BadRequestData; "" where it has none.

    Its own text may quote data and is left out.
    """
    length = response.headers.get("content-length", "")
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        # Its length says nothing about its decoded size.
        return ""
    is_short = length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= _PROBLEM_BYTES
    if not is_short or "json" not in response.headers.get("content-type", ""):
        return ""
    try:
        kind = msgspec.json.decode(response.read(), type=_Problem).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    name = kind.removeprefix(_PROBLEMS)
    return name if kind != name and name.isalnum() else ""


def refusal_error(
    address: str, response: httpx.Response, parameters: Mapping[str, str], *, path: str = "/v2", problem: str = ""
) -> ContextureError:
    """Returns the error of a response other than 200.

    Args:
        address: of the broker, without secrets.
        parameters: the URL parameters; their values are not shown.
        path: that was requested.
        problem: the name of the NGSI-LD problem, where the response has one.
    """
    status = response.status_code
    correlator = response.headers.get("fiware-correlator", "")
    if status in RETRIED_STATUSES:
        return BrokerUnavailableError(
            f"the context broker at {address} responded with {status}",
            next_step="check the broker's log and its database; the run is retried",
            correlator=correlator,
            retry_after_seconds=retry_after_seconds(response.headers.get("retry-after", "")),
        )
    if status > 500 and status != httpx.codes.NOT_IMPLEMENTED:
        return RetriableError(
            f"the context broker at {address} responded with {status}",
            next_step="check the broker's log and that of the proxy before it; the run is retried",
            correlator=correlator,
        )
    return _configuration(address, status, correlator, _Refused(path, tuple(parameters), problem))


def retry_after_seconds(header: str) -> float:
    """Returns how long a Retry-After requests to wait (RFC 9110, 10.2.3: seconds or a date); 0 where it does not."""
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):  # also beyond the years that there are
        return 0.0
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


@dataclass(frozen=True, slots=True)
class _Refused:
    """A request that was refused, without its values."""

    path: str
    parameters: tuple[str, ...]
    problem: str

    @property
    def api_root(self) -> str:
        return f"/{self.path.split('/')[1]}"

    @property
    def named(self) -> str:
        return f" {self.problem}" if self.problem else ""


def _configuration(address: str, status: int, correlator: str, refused: _Refused) -> ConfigurationError:
    if refused.problem == "NonexistentTenant":
        message = f"the context broker at {address} has no such tenant ({status}{refused.named})"
        next_step = "correct the publication's source.service, or create this tenant at the broker"
    elif status in _UNAUTHORISED and refused.problem != "TooManyResults":
        message = f"the context broker at {address} refuses the credentials of the connection ({status})"
        next_step = "put valid credentials into the headers of the connection, and give them the right to read"
        if status == httpx.codes.UNAUTHORIZED:
            return TokenRefusedError(message, next_step=next_step, correlator=correlator)
    elif status == 400 or refused.problem:
        asked = ", ".join(refused.parameters)
        message = f"the context broker at {address} rejects the request ({status}{refused.named}; {asked})"
        next_step = "correct service, service_path and the selection in the publication's source"
    else:
        message = f"what is at {address} does not respond as a context broker ({status})"
        next_step = f"correct the address in the connection: the part before {refused.api_root}"
    is_offered = status not in _NOT_OFFERED and refused.problem != "OperationNotSupported"
    kind = ConfigurationError if is_offered or refused.problem == "NonexistentTenant" else NotOfferedError
    return kind(message, next_step=next_step, correlator=correlator)


class RegistryUnavailableError(RetriableError):
    """The registry was away or ill for a moment: a request soon after may succeed."""


class IncompleteReplyError(RegistryUnavailableError):
    """A response that is empty, or less than a whole message: it says nothing about what the registry holds."""


class ReplyTooLargeError(ConfigurationError):
    """A response is larger than the connection allows: a request for less may pass."""
