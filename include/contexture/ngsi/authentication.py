"""How a broker's access tokens are come by. Everything here may be a secret, and none of it shows in a repr."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from contexture.errors import ConfigurationError

GrantKind = Literal["client_credentials", "password", "keyrock"]
GRANTS: tuple[GrantKind, ...] = ("client_credentials", "password", "keyrock")

_NEXT_STEP = "correct the authentication in the extra of the source's connection"


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """Tokens that a token service gives for a while.

    Attributes:
        kind: `client_credentials` and `password` are OAuth2 grants (RFC 6749, 4.4 and 4.3); `keyrock` is the identity
            API of Keyrock, which takes a name and a password and answers with the header `X-Subject-Token`.
        url: where tokens are asked for.
        client_id, client_secret: of the client; sent by HTTP Basic authentication. Not used by `keyrock`.
        username, password: of the user, for `password` and `keyrock`.
        scope: asked for where it isn't empty (OAuth2).
        header: the header that carries the token: `Authorization` (as `Bearer ...`), or one that holds it alone, such
            as the `X-Auth-Token` of a PEP proxy.

    Raises:
        ConfigurationError: something that this kind needs is not there.
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
            raise ConfigurationError("the token service's address is no HTTP address", next_step=_NEXT_STEP)
        lacking = [name for name in _NEEDED[self.kind] if not getattr(self, name)]
        if lacking:
            raise ConfigurationError(
                f"authentication by {self.kind} needs {' and '.join(lacking)}",
                next_step="give them in the connection: its login and password, or its extra",
            )

    @property
    def address(self) -> str:
        """Where tokens are asked for, without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def secrets(self) -> tuple[str, ...]:
        """What must be shown nowhere."""
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
