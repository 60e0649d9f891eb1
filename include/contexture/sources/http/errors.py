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
    """The broker was away or ill for a moment: asking again soon is worth it."""


class TokenRefusedError(ConfigurationError):
    """The broker does not take our credentials (401): a new token may pass, if they are tokens."""


class NotOfferedError(ConfigurationError):
    """What was asked for is not offered there (404, 405, 501, or NGSI-LD's OperationNotSupported)."""


class PageTimeoutError(RetriableError):
    """The broker took too long over one page: a smaller page may pass."""


class PageTooLargeError(RejectedError):
    """A page is larger than what is read at once: a smaller page may pass."""


@contextmanager
def translate_http_error(address: str, who: str = BROKER) -> Iterator[None]:
    """Turns httpx's exceptions into ours, once.

    Args:
        address: who is asked, without secrets.
        who: what it is, for messages.

    Raises:
        BrokerUnavailableError: no connection, or it broke.
        PageTimeoutError: the connection stands but the answer did not come in time.
        ConfigurationError: the address, a header or a certificate is not usable.
    """
    try:
        yield
    except (httpx.ReadTimeout, httpx.WriteTimeout) as error:
        raise page_timeout(address, who) from error
    except httpx.TransportError as error:
        raise _silence(address, error, who) from error
    except (httpx.InvalidURL, httpx.DecodingError, httpx.StreamError, ValueError) as error:
        # `from None`: these may quote a header or an address with a password.
        raise ConfigurationError(
            f"the request to {who} at {address} can not be made ({type(error).__name__})",
            next_step="correct the connection's address and headers, and what the publication selects",
        ) from None


def page_timeout(address: str, who: str = BROKER) -> PageTimeoutError:
    """The answer did not come within the connection's time."""
    return PageTimeoutError(
        f"{who} at {address} did not answer in time",
        next_step="give the connection more timeout_seconds, or the source a smaller page_size; the run is retried",
    )


def _silence(address: str, error: httpx.TransportError, who: str) -> ContextureError:
    if _is_certificate_refused(error):
        return ConfigurationError(
            f"the certificate of {who} at {address} is not trusted",
            next_step="put the bundle of its authority into the connection's verify",
        )
    if _is_ours_wanted(error):
        return ConfigurationError(
            f"{who} at {address} wants a certificate of ours that it trusts",
            next_step="put one that its authority signed, and is valid today, into the connection's certificate and "
            "certificate_key",
        )
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        return ConfigurationError(
            f"the request to {who} at {address} is not HTTP ({type(error).__name__})",
            next_step="correct the connection's address and headers, and what the publication selects",
        )
    return BrokerUnavailableError(
        f"{who} at {address} is away ({type(error).__name__})",
        next_step="start the broker or correct the host and port of its connection; the run is retried",
    )


def _is_certificate_refused(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class _Problem(msgspec.Struct):
    type: str = ""


def problem_named(response: httpx.Response) -> str:
    """The name of the NGSI-LD problem (RFC 7807) that an answer shows, such as BadRequestData; "" where it shows none.

    Its own words may quote data and are left out.
    """
    length = response.headers.get("content-length", "")
    if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
        # Its length says nothing about what it is unpacked.
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


def _is_ours_wanted(error: BaseException | None) -> bool:
    """Whether the other side ended the handshake over our certificate, or for want of one (RFC 8446, 6.2)."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and any(alert in str(error.reason) for alert in _ALERTS_ABOUT_OURS):
            return True
        error = error.__cause__ or error.__context__
    return False


def refusal_error(
    address: str, response: httpx.Response, parameters: Mapping[str, str], *, path: str = "/v2", problem: str = ""
) -> ContextureError:
    """What an answer other than 200 means.

    Args:
        address: who was asked, without secrets.
        parameters: the URL parameters; their values are not shown.
        path: what was asked for.
        problem: the name of the NGSI-LD problem, where the answer shows one.
    """
    status = response.status_code
    correlator = response.headers.get("fiware-correlator", "")
    if status in RETRIED_STATUSES:
        return BrokerUnavailableError(
            f"the context broker at {address} answered {status}",
            next_step="look into the broker's log and at its database; the run is retried",
            correlator=correlator,
            retry_after_seconds=retry_after_seconds(response.headers.get("retry-after", "")),
        )
    if status > 500 and status != httpx.codes.NOT_IMPLEMENTED:
        return RetriableError(
            f"the context broker at {address} answered {status}",
            next_step="look into the broker's log and that of the proxy before it; the run is retried",
            correlator=correlator,
        )
    return _configuration(address, status, correlator, _Refused(path, tuple(parameters), problem))


def retry_after_seconds(header: str) -> float:
    """How long a Retry-After asks to wait (RFC 9110, 10.2.3: seconds or a date); 0 when it doesn't say."""
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, OverflowError):  # also beyond the years that there are
        return 0.0
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


@dataclass(frozen=True, slots=True)
class _Refused:
    """A question that was refused, without its values."""

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
        next_step = "correct the publication's source.service, or let the broker know the tenant"
    elif status in _UNAUTHORISED and refused.problem != "TooManyResults":
        message = f"the context broker at {address} refuses our credentials ({status})"
        next_step = "put valid credentials into the headers of the connection, and give them the right to read"
        if status == httpx.codes.UNAUTHORIZED:
            return TokenRefusedError(message, next_step=next_step, correlator=correlator)
    elif status == 400 or refused.problem:
        asked = ", ".join(refused.parameters)
        message = f"the context broker at {address} does not take the request ({status}{refused.named}; {asked})"
        next_step = "correct service, service_path and the selection in the publication's source"
    else:
        message = f"what is at {address} does not answer as a context broker ({status})"
        next_step = f"correct the address in the connection: the part before {refused.api_root}"
    is_offered = status not in _NOT_OFFERED and refused.problem != "OperationNotSupported"
    kind = ConfigurationError if is_offered or refused.problem == "NonexistentTenant" else NotOfferedError
    return kind(message, next_step=next_step, correlator=correlator)


class RegistryUnavailableError(RetriableError):
    """The registry was away or ill for a moment: asking again soon is worth it."""


class IncompleteReplyError(RegistryUnavailableError):
    """An answer that is empty, or less than a whole message: it says nothing about what the registry holds."""


class ReplyTooLargeError(ConfigurationError):
    """An answer is larger than the connection allows: less at once may pass."""
