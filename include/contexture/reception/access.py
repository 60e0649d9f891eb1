"""Who may notify: clients with a secret, or, where that is switched on, clients on this machine."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from starlette.requests import Request

from contexture.errors import ConfigurationError

_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
_NEXT_STEP = "give a bearer token, or a user and a password, of printable ASCII characters"


class Access(Protocol):
    """Decides about requests."""

    def allows(self, request: Request) -> bool:
        """Whether the request may notify."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Bearer tokens, and users with passwords (Basic, RFC 7617). Only their hashes are stored.

    Raises:
        ConfigurationError: there are none, or one can't be sent in a header.
    """

    _hashes: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, *, tokens: Iterable[str] = (), users: Iterable[tuple[str, str]] = ()) -> Credentials:
        known = [f"bearer {_checked(token)}" for token in tokens]
        for user, password in users:
            if ":" in user:
                raise ConfigurationError("a user of the reception holds a colon", next_step=_NEXT_STEP)
            known.append(f"basic {_checked(user)}:{_checked(password)}")
        if not known:
            raise ConfigurationError("the reception has no credentials", next_step=_NEXT_STEP)
        return cls(tuple(_hash(item.encode()) for item in known))

    def allows(self, request: Request) -> bool:
        shown = request.headers.getlist("authorization")
        found = _hash(_shown(shown[0]) if len(shown) == 1 else b"")
        # All are compared, and hashes of one length, so that the time shows nothing.
        return sum(hmac.compare_digest(found, known) for known in self._hashes) > 0


@dataclass(frozen=True, slots=True)
class ThisMachineOnly:
    """All clients on this machine, without a secret: for tests.

    The server has to listen on a loopback address, and what came through a proxy is refused, because a proxy's requests
    come from this machine regardless of the sender.

    Args:
        without_credentials: must be True, so that it is always explicit.

    Raises:
        ConfigurationError: it is not.
    """

    without_credentials: bool

    def __post_init__(self) -> None:
        if self.without_credentials is not True:
            raise ConfigurationError("the reception has no credentials", next_step=_NEXT_STEP)

    def allows(self, request: Request) -> bool:
        if any(name in request.headers for name in _FORWARDED):
            return False
        ends = (request.scope.get("server"), request.scope.get("client"))
        return all(end is not None and _is_loopback(end[0]) for end in ends)


def _shown(authorization: str) -> bytes:
    scheme, _, value = authorization.strip().partition(" ")
    kind = scheme.lower()
    content = value.strip().encode("latin-1", "replace")
    if kind == "basic":
        try:
            content = b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            return b""
    return kind.encode("latin-1", "replace") + b" " + content


def _checked(secret: str) -> str:
    if not secret or not secret.isascii() or not secret.isprintable() or secret != secret.strip():
        raise ConfigurationError("a credential of the reception can't be used", next_step=_NEXT_STEP)
    return secret


def _hash(content: bytes) -> bytes:
    return sha256(content).digest()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


TOKEN_VARIABLE = "CONTEXTURE_NOTIFY_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE_VARIABLE = "CONTEXTURE_NOTIFY_TOKEN_FILE"  # noqa: S105 - the name of a variable


def credentials(environment: Mapping[str, str], file: Path | None = None) -> Credentials:
    """Returns credentials with the token of the variable, and each line of the file (two, while one replaces another).

    Args:
        environment: the variables of the process.
        file: the file; that of the variable when None.

    Raises:
        ConfigurationError: there is no token, the file can't be read, or a token can't be sent in a header.
    """
    named = file or (Path(environment[TOKEN_FILE_VARIABLE]) if environment.get(TOKEN_FILE_VARIABLE) else None)
    tokens = [environment[TOKEN_VARIABLE]] if environment.get(TOKEN_VARIABLE) else []
    tokens += _lines(named) if named is not None else []
    if not tokens:
        raise ConfigurationError(
            "notifiers have to send a token, and none is set",
            next_step=f"set {TOKEN_VARIABLE}, or name a file in {TOKEN_FILE_VARIABLE} or by --token-file; for a test "
            "on this machine alone, use --without-credentials",
        )
    return Credentials.of(tokens=tokens)


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigurationError(
            f"the file of tokens {file} can't be read: {reason}", next_step="write one token in each of its lines"
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]
