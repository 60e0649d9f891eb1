"""The connection to a structure registry: address, credentials, and the interface that it has."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeVar

import msgspec

from contexture.sources.http.connection import (
    ConnectionDocument,
    ConnectionFields,
    HttpConnection,
    connection_error,
    http_connection,
)

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

    The address of a Fusion (Metadata) Registry is that of its web application; of any other registry it is the part
    before `/structure/…` or `/codelist/…`. Without credentials a registry returns what is public, which is another
    content: two publications of one registry, one with credentials and one without, are two identities.

    Attributes:
        timeout_seconds: how long a registry may send nothing, before its response or within it.
        flavour: `fmr` and `generic` make the request for its product needless.
        api: the version of SDMX-REST; `auto` checks which one responds.
        reply_bytes: the largest response that is accepted, decoded.
    """

    WHO: ClassVar[str] = "the structure registry"
    DOCUMENT: ClassVar[type[ConnectionDocument]] = _Document

    # One response may contain a whole agency; registries build it before they send its first byte.
    timeout_seconds: float = 120.0
    flavour: AskedFlavour = field(default="auto", kw_only=True)
    api: AskedApi = field(default="auto", kw_only=True)
    reply_bytes: int = field(default=REPLY_BYTES, kw_only=True)

    def __post_init__(self) -> None:
        HttpConnection.__post_init__(self)
        if self.reply_bytes <= 0:
            raise self.validation_error(f"{self.WHO}'s reply_bytes is not above 0")

    @property
    def is_public(self) -> bool:
        """Whether requests carry no credentials."""
        return not (self.headers or self.grant or self.certificate or "@" in self.base_url)


def registry_connection(connection_id: str, fields: ConnectionFields) -> RegistryConnection:
    """Returns the registry of the fields of an Airflow connection of type `http` or `https`.

    Beside what `contexture.sources.http.connection` shows, its extra may have `flavour` (auto, fmr, generic), `api`
    (auto, v1, v2) and `reply_bytes`.

    Raises:
        ConfigurationError: they describe none; the message never shows a secret.
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
    raise connection_error(connection_id, f"has a {name} that is not known", f"use one of {', '.join(known)}")


def _reply_bytes(connection_id: str, fields: ConnectionFields) -> int:
    given = fields.text("reply_bytes", str(REPLY_BYTES))
    if not given.isdecimal() or not int(given):
        raise connection_error(
            connection_id, "has reply_bytes that are not a number above 0", "write a whole number of bytes"
        )
    return int(given)


PRODUCT = "/ws/fusion/info/product"
_VERSION = re.compile(r"(\d+)(?:[.\d]*)")


@dataclass(frozen=True, slots=True)
class Product:
    """What the product endpoint of a Fusion (Metadata) Registry shows; `version` such as `12.4.2`."""

    version: str

    @property
    def release(self) -> int:
        """The first number of the version; 0 where it has none."""
        found = _VERSION.match(self.version)
        return int(found[1]) if found else 0

    @property
    def knows_as_of(self) -> bool:
        """Whether it stores the history of every artefact, as releases since 12 do (SDMX-REST 2.2.0)."""
        return self.release >= 12

    @property
    def has_version_2(self) -> bool:
        """Whether SDMX-REST 2 is surely there."""
        return self.release >= 11

    def __str__(self) -> str:
        return f"{'FMR' if self.release >= 11 else 'Fusion Registry'} {self.version}"


def product_in(body: bytes) -> Product | None:
    """Returns the product that a response of the product endpoint names; None where it names none."""
    try:
        members = msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    version = {name.lower(): value for name, value in members.items()}.get("version")
    return Product(version[:40]) if isinstance(version, str) and _VERSION.match(version) else None
