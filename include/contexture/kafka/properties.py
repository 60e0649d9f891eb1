"""Every property of the Kafka client, with its default, its value for a connection, and where that comes from."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from contexture.kafka.secret_options import MASK, is_secret
from contexture.kafka.settings import ClientSettings
from contexture.kafka.stores import STORE_NAMES

Origin = Literal["client", "contexture", "connection"]

_COLUMNS: Final = 6
_ALIAS: Final = "Alias for `"
_APPLIES: Final = {"P": "producer", "C": "consumer", "*": "all"}
_PEM: Final = "-----BEGIN "


@dataclass(frozen=True, slots=True)
class Known:
    """A property as the client describes it; `alias_of` names the one it is another name of."""

    name: str
    applies_to: str
    range: str
    default: str
    description: str
    alias_of: str


@dataclass(frozen=True, slots=True)
class ClientProperty:
    """One property.

    Attributes:
        name: as the client calls it.
        default: the client's own.
        value: in force; `***` for a secret.
        origin: who says so: the client (its default), Contexture, or the connection.
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
    """
    given = settings.options if settings is not None else {}
    stores = {name: value for name, value in given.items() if name in STORE_NAMES}
    plain = ClientSettings(MappingProxyType({name: value for name, value in given.items() if name not in stores}))
    ours = {"P": _by_main_name(plain.producer()), "C": _by_main_name(plain.consumer())}
    ours["*"] = {**ours["C"], **ours["P"], **stores}
    said = {_main_name(name): name for name in given}
    sources = settings.sources if settings is not None else {}
    rows = [_property(known, ours[known.applies_to], said, sources) for known in catalogue().values()]
    rows += [_of_store(name, value) for name, value in stores.items() if name not in catalogue()]
    return tuple(sorted(rows, key=lambda row: row.name))


@cache
def catalogue() -> Mapping[str, Known]:
    """What the installed client knows, by name."""
    return {known.name: known for known in _parsed(_described())}


def _described() -> str:
    """The table of its properties that the client prints; Python's client shows it nowhere else."""
    from confluent_kafka import cimpl

    # Symbols of librdkafka are found through the module that is linked to it, however it was installed.
    library, system = ctypes.CDLL(cimpl.__file__), ctypes.CDLL(None)
    system.fdopen.restype = ctypes.c_void_p
    system.fdopen.argtypes = [ctypes.c_int, ctypes.c_char_p]
    system.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    with tempfile.TemporaryFile() as file:
        stream = system.fdopen(os.dup(file.fileno()), b"w")
        library.rd_kafka_conf_properties_show(stream)
        system.fclose(stream)
        file.seek(0)
        return file.read().decode()


def _parsed(text: str) -> Iterator[Known]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|", _COLUMNS - 1)]
        if len(cells) != _COLUMNS or cells[1] not in _APPLIES:
            continue
        name, applies, values, default, _, description = cells
        alias = description.removeprefix(_ALIAS).partition("`")[0] if description.startswith(_ALIAS) else ""
        yield Known(name, applies, values, default, description, alias)


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
        applies_to=_APPLIES[known.applies_to],
        range=known.range,
        description=known.description,
    )


def _of_store(name: str, value: object) -> ClientProperty:
    words = "Of Java clients: read into certificates and a key when a client is made"
    return ClientProperty(name, "", _shown(name, value), "connection", "", "all", "", words)


def _shown(name: str, value: object) -> str:
    if is_secret(name) and value != "":
        return MASK
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text.count(_PEM)} PEM blocks" if _PEM in text else text
