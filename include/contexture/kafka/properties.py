"""Every property of the Kafka client, with its default, its value for a connection, and where that comes from."""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from contexture.kafka import settings
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.java_properties import TRANSLATED
from contexture.kafka.key_stores import STORE_NAMES
from contexture.kafka.settings import ENFORCED, MASK, ClientSettings, is_secret

APPLIES: Final = {"P": "producer", "C": "consumer", "*": "all"}
"""The kinds of clients, by the client's sign for them."""

_ROW: Final = re.compile(
    r"(?P<name>\S+) +\| +(?P<applies>[CP*]) +\|(?P<range>[^|]*)\|(?P<default>.*?)\| (?:high|medium|low) +\|"
    r"(?P<words>.*)"
)
_ALIAS: Final = "Alias for `"
_FEATURES: Final = "builtin.features"
_LONGEST: Final = 1024


@dataclass(frozen=True, slots=True)
class PropertyDescription:
    """A property as the client describes it; `alias_of` names the one it is another name of."""

    name: str
    applies_to: str
    range: str
    default: str
    description: str
    alias_of: str


@cache
def catalogue() -> Mapping[str, PropertyDescription]:
    """Returns what the installed client knows, by name."""
    from confluent_kafka import cimpl

    # Symbols of librdkafka are found through the module that is linked to it, however it was installed.
    library = ctypes.CDLL(cimpl.__file__)
    found: dict[str, PropertyDescription] = {}
    for known in _parsed(_described(library)):
        # Of a property that is listed for topics too, the first description counts.
        found.setdefault(known.name, known)
    # The table names what any client may have, not what this one was built with.
    found[_FEATURES] = replace(found[_FEATURES], default=_features(library))
    return found


def _described(library: ctypes.CDLL) -> str:
    """Returns the table of its properties that the client prints; Python's client shows it nowhere else."""
    system = ctypes.CDLL(None)
    system.fdopen.restype = ctypes.c_void_p
    system.fdopen.argtypes = [ctypes.c_int, ctypes.c_char_p]
    system.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    with tempfile.TemporaryFile() as file:
        stream = system.fdopen(os.dup(file.fileno()), b"w")
        library.rd_kafka_conf_properties_show(stream)
        system.fclose(stream)
        file.seek(0)
        return file.read().decode()


def _features(library: ctypes.CDLL) -> str:
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_destroy.argtypes = [ctypes.c_void_p]
    library.rd_kafka_conf_get.argtypes = [
        *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]
    text, size = ctypes.create_string_buffer(_LONGEST), ctypes.c_size_t(_LONGEST)
    configuration = library.rd_kafka_conf_new()
    library.rd_kafka_conf_get(configuration, _FEATURES.encode(), text, ctypes.byref(size))
    library.rd_kafka_conf_destroy(configuration)
    return text.value.decode()


def _parsed(text: str) -> Iterator[PropertyDescription]:
    for row in filter(None, map(_ROW.fullmatch, text.splitlines())):
        words = row["words"].strip()
        alias = words.removeprefix(_ALIAS).partition("`")[0] if words.startswith(_ALIAS) else ""
        yield PropertyDescription(
            row["name"], row["applies"], row["range"].strip(), row["default"].strip(), words, alias
        )


_IN_FLIGHT: Final = 5
_KBYTE: Final = 1024
_FETCHED_BYTES: Final = 52_428_800
_LARGEST_BYTES: Final = 1_000_000
_REFRESHES: Final = 3


def of_producer(options: Mapping[str, object]) -> dict[str, object]:
    """Returns what follows from a transactional producer's options, by the client's main names."""
    found = _of_all(options) | {"max.in.flight.requests.per.connection": _IN_FLIGHT}
    if timeout_ms := _number(options, "transaction.timeout.ms"):
        found |= {"message.timeout.ms": int(timeout_ms), "socket.timeout.ms": max(int(timeout_ms) - 100, 900)}
    if (linger_ms := _number(options, "queue.buffering.max.ms")) is not None:
        found["sticky.partitioning.linger.ms"] = int(2 * linger_ms)
    return found


def of_consumer(options: Mapping[str, object]) -> dict[str, object]:
    """Returns what follows from a consumer's options, by the client's main names."""
    queue, largest = _number(options, "queued.max.messages.kbytes"), _number(options, "message.max.bytes")
    fetched = _FETCHED_BYTES if queue is None else min(_FETCHED_BYTES, int(queue) * _KBYTE)
    return _of_all(options) | {"fetch.max.bytes": max(fetched, int(largest or _LARGEST_BYTES))}


def _of_all(options: Mapping[str, object]) -> dict[str, object]:
    found: dict[str, object] = {}
    if refresh_ms := _number(options, "topic.metadata.refresh.interval.ms"):
        found["metadata.max.age.ms"] = int(refresh_ms) * _REFRESHES
    if backoff_ms := _number(options, "retry.backoff.ms"):
        found["topic.metadata.refresh.fast.interval.ms"] = int(backoff_ms)
    return found


def _number(options: Mapping[str, object], name: str) -> float | None:
    """Returns the settings that the client accepts; what it would refuse counts as absent."""
    try:
        return float(str(options[name]))
    except (KeyError, ValueError):
        return None


# The client names only the first unknown property.
_UNKNOWN: Final = re.compile(r'No such configuration property: "([^"]*)"')


def unknown(names: Iterable[str]) -> list[str]:
    """Those that mean nothing to the client, nor to what translates them."""
    known = _known()
    return sorted(name for name in names if name not in known)


def refusal(names: Iterable[str]) -> KafkaConfigurationError:
    """Returns the error for names that mean nothing."""
    found = sorted(names)
    meant = {name: nearest for name in found if (nearest := _nearest(name))}
    one = "it" if len(found) == 1 else "them"
    advice = [f"write {nearest} for {'it' if len(found) == 1 else name}" for name, nearest in meant.items()]
    advice += [f"take {one} out of the extra of the Kafka connection"] if len(meant) < len(found) else []
    return KafkaConfigurationError(
        f"the Kafka client has no such properties: {', '.join(found)}",
        next_step=f"{', or '.join(advice)}; `contexture connection properties` lists those that there are",
    )


def refusal_of(text: str) -> KafkaConfigurationError | None:
    """Returns the error for a name that the client does not know; None where its text names none."""
    found = _UNKNOWN.search(text)
    return refusal([found[1]]) if found is not None else None


def _known() -> frozenset[str]:
    return frozenset(catalogue()) | TRANSLATED | STORE_NAMES | {settings.PROFILE}


def _nearest(name: str) -> str:
    return next(iter(get_close_matches(name, sorted(_known()), n=1, cutoff=0.8)), "")


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
        is_enforced: whether Contexture sets it whatever the connection says.
    """

    name: str
    default: str
    value: str
    origin: Origin
    given_as: str
    applies_to: str
    range: str
    description: str
    is_enforced: bool = False


def client_properties(settings: ClientSettings | None = None) -> tuple[ClientProperty, ...]:
    """Returns all properties by name; without settings as they are where a connection says nothing but its brokers.

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
        "P": {**of_producer(producer), **producer},
        "C": {**of_consumer(consumer), **consumer},
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
    """Returns the name that it is an alias of, or itself."""
    known = catalogue().get(name)
    return known.alias_of if known is not None and known.alias_of else name


def _property(
    known: PropertyDescription, ours: Mapping[str, object], said: Mapping[str, str], sources: Mapping[str, str]
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
        is_enforced=origin == "contexture" and main in _enforced(),
    )


@cache
def _enforced() -> frozenset[str]:
    return frozenset(map(_main_name, ENFORCED))


def _profile(given: Mapping[str, object]) -> ClientProperty:
    words = "A word of Contexture's for several properties: see docs/reference/kafka-connection.md"
    chosen = str(given.get(settings.PROFILE, ""))
    origin: Origin = "connection" if chosen else "contexture"
    return ClientProperty(settings.PROFILE, "", chosen, origin, "", "all", ", ".join(settings.NAMES), words)


def _of_store(name: str, value: object) -> ClientProperty:
    words = "Of Java clients: read into certificates and a key when a client is made"
    return ClientProperty(name, "", _shown(name, value), "connection", "", "all", "", words)


def _shown(name: str, value: object) -> str:
    if is_secret(name) and value != "":
        return MASK
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text.count(_PEM)} PEM blocks" if _PEM in text else text
