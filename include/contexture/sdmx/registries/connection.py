"""Where a structure registry is, what it wants to see before it answers, and how it is to be asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeVar

from contexture.errors import ConfigurationError
from contexture.ngsi.connection_fields import ConnectionFields, http_connection
from contexture.ngsi.http_connection import ConnectionDocument, HttpConnection

AskedFlavour = Literal["auto", "fmr", "generic"]
AskedApi = Literal["auto", "v1", "v2"]
FLAVOURS: tuple[AskedFlavour, ...] = ("auto", "fmr", "generic")
APIS: tuple[AskedApi, ...] = ("auto", "v1", "v2")
REPLY_BYTES = 1 << 30
Word = TypeVar("Word", bound=str)


class _Document(ConnectionDocument, forbid_unknown_fields=True):
    flavour: AskedFlavour = "auto"
    api: AskedApi = "auto"
    reply_bytes: int = REPLY_BYTES


@dataclass(frozen=True, slots=True)
class RegistryConnection(HttpConnection):
    """How to reach a structure registry.

    The address of a Fusion (Metadata) Registry is that of its web application; of any other registry what stands
    before `/structure/…` or `/codelist/…`. Without credentials it answers what is public, which is another content:
    two publications of one registry, one with credentials and one without, are two identities.

    Attributes:
        timeout_seconds: how long a registry may be silent, before its answer or within it.
        flavour: `fmr` and `generic` leave out the question which one it is.
        api: the version of SDMX-REST; `auto` tries.
        reply_bytes: the largest answer that is taken, after unpacking.
    """

    WHO: ClassVar[str] = "the structure registry"
    DOCUMENT: ClassVar[type[ConnectionDocument]] = _Document

    # One answer may hold a whole agency; registries put it together before its first byte comes.
    timeout_seconds: float = 120.0
    flavour: AskedFlavour = field(default="auto", kw_only=True)
    api: AskedApi = field(default="auto", kw_only=True)
    reply_bytes: int = field(default=REPLY_BYTES, kw_only=True)

    def __post_init__(self) -> None:
        HttpConnection.__post_init__(self)
        if self.reply_bytes <= 0:
            raise self.mistake(f"{self.WHO}'s reply_bytes is not above 0")

    @property
    def is_public(self) -> bool:
        """Whether it is asked as anybody may ask it."""
        return not (self.headers or self.grant or self.certificate or "@" in self.base_url)


def registry_connection(connection_id: str, fields: ConnectionFields) -> RegistryConnection:
    """The registry behind the fields of an Airflow connection of type `http` or `https`.

    Beside what `contexture.ngsi.connection_fields` tells, its extra may have `flavour` (auto, fmr, generic), `api`
    (auto, v1, v2) and `reply_bytes`.

    Raises:
        ConfigurationError: they lead to none; the message never shows a secret.
    """
    found = http_connection(RegistryConnection, connection_id, fields)
    return replace(
        found,
        flavour=_one_of(connection_id, fields, "flavour", FLAVOURS),
        api=_one_of(connection_id, fields, "api", APIS),
        reply_bytes=_reply_bytes(connection_id, fields),
    )


def _one_of(connection_id: str, fields: ConnectionFields, name: str, known: tuple[Word, ...]) -> Word:
    given = fields.text(name, "auto")
    for word in known:
        if word == given:
            return word
    raise _mistake(connection_id, f"has a {name} that is not known", f"use one of {', '.join(known)}")


def _reply_bytes(connection_id: str, fields: ConnectionFields) -> int:
    given = fields.text("reply_bytes", str(REPLY_BYTES))
    if not given.isdecimal() or not int(given):
        raise _mistake(connection_id, "has reply_bytes that are no number above 0", "write a whole number of bytes")
    return int(given)


def _mistake(connection_id: str, message: str, next_step: str) -> ConfigurationError:
    return ConfigurationError(
        f"the Airflow connection {connection_id!r} {message}", next_step=next_step, connection=connection_id
    )
