"""The encoder and the partitioner that a publication names: `message.encoder` and `publish.partitioner`.

An installed package offers functions by entry points, as any Python package does:

    [project.entry-points."contexture.encoders"]
    zlib = "zlib:compress"                      # bytes to bytes

    [project.entry-points."contexture.partitioners"]
    vip-first = "our_company.kafka:vip_first"   # key (or None) and number of partitions to a partition
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, Final  # Any: what a package offers is known when it is called

import orjson

from contexture.errors import ConfigurationError, ContextureError
from contexture.kafka.partitioner import partition_for
from contexture.kafka.settings import ClientSettings
from contexture.publications import Publication
from contexture.publications.delivery import JAVA_PARTITIONER, KEY_TOPIC
from contexture.sending.context import (
    ChoosePartition,
    Encode,
    PartitionsOf,
    encoded_values,
    one_after_the_other,
    partitioned_by_topic,
    partitions_by_brokers,
    timed_by_sending,
)

ENCODERS: Final = "contexture.encoders"
PARTITIONERS: Final = "contexture.partitioners"

Named = Callable[[str, str], Callable[..., Any]]
"""Returns the function that an entry point of a group and a name offers."""


def entry_point(group: str, name: str) -> Callable[..., Any]:
    """Returns the function that an installed package offers.

    Raises:
        ConfigurationError: no package offers one of that name, several do, or it cannot be loaded.
    """
    found = {point.value: point for point in entry_points(group=group, name=name)}
    if len(found) != 1:
        others = sorted({point.name for point in entry_points(group=group)})
        what = f"several packages offer {name!r}" if found else f"no installed package offers {name!r}"
        raise ConfigurationError(
            f"{what} as an entry point of the group {group}",
            next_step=f"install exactly one package that offers it where senders run; offered are: "
            f"{', '.join(others) or 'none'}",
            group=group,
        )
    try:
        function = next(iter(found.values())).load()
    except Exception as error:
        raise ConfigurationError(
            f"the entry point {name!r} of the group {group} cannot be loaded: {type(error).__name__}: {error}",
            next_step="correct the package that offers it, or its installation",
            group=group,
        ) from error
    if not callable(function):
        raise ConfigurationError(
            f"the entry point {name!r} of the group {group} is not a function",
            next_step="let it name a function, as in our_company.kafka:encode",
            group=group,
        )
    return function  # type: ignore[no-any-return]


def encode_of(
    publication: Publication,
    settings: ClientSettings,
    *,
    named: Named = entry_point,
    partitions_of: PartitionsOf | None = None,
) -> Encode | None:
    """Returns what changes a publication's rows before they are sent; None where nothing does.

    Args:
        publication: whose choices they are.
        settings: of the connection that records go to: brokers know the number of partitions.
        named, partitions_of: for tests.

    Raises:
        ConfigurationError: an entry point that the publication names is not there.
    """
    chosen: list[Encode] = []
    if publication.message.encoder is not None:
        chosen.append(encoded_values(_checked_encoder(publication.message.encoder, named)))
    if publication.publish.partitioner != JAVA_PARTITIONER:
        choose = _partitioner(publication.publish.partitioner, named)
        chosen.append(partitioned_by_topic(partitions_of or partitions_by_brokers(settings), choose))
    if publication.topics.keep == "history":
        # Kafka removes a history's records by their own time: that of a change may be older than the retention.
        chosen.append(timed_by_sending)
    return one_after_the_other(*chosen) if chosen else None


def _checked_encoder(name: str, named: Named) -> Callable[[bytes], bytes]:
    function = named(ENCODERS, name)

    def encode(value: bytes) -> bytes:
        made = _called("encoder", name, function, value)
        if not isinstance(made, bytes):
            raise _wrong_result("encoder", name, made, "bytes")
        return made

    return encode


def _partitioner(name: str, named: Named) -> ChoosePartition:
    if name.isdecimal():
        number = int(name)
        return lambda topic, key, partitions: number
    if name == KEY_TOPIC:
        return lambda topic, key, partitions: partition_for(topic.encode(), partitions)
    if name in _PARTS:
        read = _PARTS[name]
        return lambda topic, key, partitions: partition_for(None if key is None else read(key), partitions)
    function = named(PARTITIONERS, name)

    def choose(topic: str, key: bytes | None, partitions: int) -> int:
        made = _called("partitioner", name, function, key, partitions)
        if not isinstance(made, int) or isinstance(made, bool):
            raise _wrong_result("partitioner", name, made, "a whole number")
        return made

    return choose


def _called(what: str, name: str, function: Callable[..., Any], *arguments: object) -> object:
    try:
        return function(*arguments)
    except ContextureError:
        raise
    except Exception as error:
        # Its message may hold data.
        raise ConfigurationError(
            f"the {what} {name!r} failed with {type(error).__name__}",
            next_step=f"correct the {what}, install it again where senders run, then clear the task",
        ) from error


def _wrong_result(what: str, name: str, made: object, wanted: str) -> ConfigurationError:
    return ConfigurationError(
        f"the {what} {name!r} returned {type(made).__name__} in place of {wanted}",
        next_step=f"correct the {what}, install it again where senders run, then clear the task",
    )


def _member(number: int) -> Callable[[bytes], bytes]:
    """Returns what reads a member of an entity's identity key, a JSON array."""
    return lambda key: str(orjson.loads(key)[number]).encode()


def _agency(key: bytes) -> bytes:
    return key.partition(b"=")[2].partition(b":")[0]


def _class(key: bytes) -> bytes:
    return key.partition(b"=")[0].rpartition(b".")[2]


_PARTS: Final[Mapping[str, Callable[[bytes], bytes]]] = MappingProxyType(
    {
        "service": _member(0),
        "service_path": _member(1),
        "id": _member(2),
        "type": _member(3),
        "agency": _agency,
        "class": _class,
    }
)
