"""Every property of the Kafka client, with its default, its value for a connection, and where that comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from contexture.kafka import effective, profiles
from contexture.kafka.catalogue import APPLIES, Known, catalogue
from contexture.kafka.secret_options import MASK, is_secret
from contexture.kafka.settings import ClientSettings
from contexture.kafka.stores import STORE_NAMES
from contexture.kafka.unknown_properties import refusal, unknown

Origin = Literal["client", "contexture", "connection"]

_PEM: Final = "-----BEGIN "


@dataclass(frozen=True, slots=True)
class ClientProperty:
    """One property.

    Attributes:
        name: as the client calls it.
        default: the client's own.
        value: in force (of those for all kinds of clients that of senders, where it is said); `***` for a secret.
        origin: who says so: the client (its default), Contexture (also by what it makes the client do), or the
            connection.
        given_as: the name by which the connection says it, where that is another one.
        applies_to: `producer`, `consumer` or `all` kinds of clients.
        range: what it can be.
        description: in the client's words.
    """

    name: str
    default: str
    value: str
    origin: Origin
    given_as: str
    applies_to: str
    range: str
    description: str


def client_properties(settings: ClientSettings | None = None) -> tuple[ClientProperty, ...]:
    """All properties by name; without settings as they are where a connection says nothing but its brokers.

    Stores of Java clients are shown as they are named, and not read.

    Raises:
        KafkaConfigurationError: the settings name what the client doesn't know.
    """
    given = settings.options if settings is not None else {}
    if strange := unknown(given):
        raise refusal(strange)
    stores = {name: value for name, value in given.items() if name in STORE_NAMES}
    plain = ClientSettings(MappingProxyType({name: value for name, value in given.items() if name not in stores}))
    producer, consumer = _by_main_name(plain.producer()), _by_main_name(plain.consumer())
    ours = {
        "P": {**effective.of_producer(producer), **producer},
        "C": {**effective.of_consumer(consumer), **consumer},
    }
    ours["*"] = {**ours["C"], **ours["P"], **stores}
    said = {_main_name(name): name for name in given}
    sources = settings.sources if settings is not None else {}
    rows = [_property(known, ours[known.applies_to], said, sources) for known in catalogue().values()]
    rows += [_of_store(name, value) for name, value in stores.items() if name not in catalogue()]
    rows.append(_profile(given))
    return tuple(sorted(rows, key=lambda row: row.name))


def _by_main_name(options: Mapping[str, object]) -> dict[str, object]:
    return {_main_name(name): value for name, value in options.items()}


def _main_name(name: str) -> str:
    """The name that it is an alias of, or itself."""
    known = catalogue().get(name)
    return known.alias_of if known is not None and known.alias_of else name


def _property(
    known: Known, ours: Mapping[str, object], said: Mapping[str, str], sources: Mapping[str, str]
) -> ClientProperty:
    main = _main_name(known.name)
    default = catalogue()[main].default if main in catalogue() else known.default
    origin: Origin = "connection" if main in said else "contexture" if main in ours else "client"
    source = sources.get(said.get(main, ""), "")
    return ClientProperty(
        name=known.name,
        default=default,
        value=default if origin == "client" else _shown(known.name, ours.get(main, MASK)),
        origin=origin,
        given_as="" if source == known.name else source,
        applies_to=APPLIES[known.applies_to],
        range=known.range,
        description=known.description,
    )


def _profile(given: Mapping[str, object]) -> ClientProperty:
    words = "A word of Contexture's for several properties: see docs/reference/kafka-connection.md"
    chosen = str(given.get(profiles.PROFILE, ""))
    origin: Origin = "connection" if chosen else "contexture"
    return ClientProperty(profiles.PROFILE, "", chosen, origin, "", "all", ", ".join(profiles.NAMES), words)


def _of_store(name: str, value: object) -> ClientProperty:
    words = "Of Java clients: read into certificates and a key when a client is made"
    return ClientProperty(name, "", _shown(name, value), "connection", "", "all", "", words)


def _shown(name: str, value: object) -> str:
    if is_secret(name) and value != "":
        return MASK
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text.count(_PEM)} PEM blocks" if _PEM in text else text
