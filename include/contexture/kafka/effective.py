"""What the client makes of its configuration by itself, where nobody says otherwise (librdkafka's CONFIGURATION.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_IN_FLIGHT: Final = 5
_KBYTE: Final = 1024
_FETCHED_BYTES: Final = 52_428_800
_LARGEST_BYTES: Final = 1_000_000
_REFRESHES: Final = 3


def of_producer(options: Mapping[str, object]) -> dict[str, object]:
    """What follows from a transactional producer's options, by the client's main names."""
    found = _of_all(options) | {"max.in.flight.requests.per.connection": _IN_FLIGHT}
    if timeout_ms := _number(options, "transaction.timeout.ms"):
        found |= {"message.timeout.ms": int(timeout_ms), "socket.timeout.ms": max(int(timeout_ms) - 100, 900)}
    if (linger_ms := _number(options, "queue.buffering.max.ms")) is not None:
        found["sticky.partitioning.linger.ms"] = int(2 * linger_ms)
    return found


def of_consumer(options: Mapping[str, object]) -> dict[str, object]:
    """What follows from a consumer's options, by the client's main names."""
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
    """What the client itself would refuse counts as not given."""
    try:
        return float(str(options[name]))
    except (KeyError, ValueError):
        return None
