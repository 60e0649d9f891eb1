"""Two ways of trading delay for throughput, to be chosen by a word instead of ten properties."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PROFILE: Final = "contexture.profile"
"""The name by which the extra of a connection says it."""

Values = Mapping[str, str | int | float | bool]

_PRODUCERS: Final[Mapping[str, Values]] = MappingProxyType(
    {
        # Each record leaves at once: small batches, many requests.
        "latency": {"linger.ms": 0, "socket.nagle.disable": True},
        # Batches wait until they are full: fewer and better compressed requests, more memory.
        "throughput": {
            "linger.ms": 100,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 524_288,
        },
    }
)
_CONSUMERS: Final[Mapping[str, Values]] = MappingProxyType(
    {
        "latency": {"fetch.min.bytes": 1, "fetch.wait.max.ms": 10, "socket.nagle.disable": True},
        "throughput": {
            "fetch.min.bytes": 1_048_576,
            "fetch.wait.max.ms": 500,
            "fetch.message.max.bytes": 16_777_216,
            "queued.max.messages.kbytes": 131_072,
        },
    }
)
NAMES: Final = tuple(sorted(_PRODUCERS))


def of_producer(options: Mapping[str, object]) -> Values:
    """What the chosen profile sets for producers; nothing without one."""
    return _PRODUCERS.get(str(options.get(PROFILE, "")), {})


def of_consumer(options: Mapping[str, object]) -> Values:
    """What the chosen profile sets for readers."""
    return _CONSUMERS.get(str(options.get(PROFILE, "")), {})


def problems(options: Mapping[str, object]) -> list[str]:
    """A sentence where a profile is named that there is none of."""
    if PROFILE in options and options[PROFILE] not in NAMES:
        return [f"{PROFILE}: give {' or '.join(NAMES)}, or leave it out for what lies between"]
    return []
