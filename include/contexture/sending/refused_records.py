"""What the headers of dead letters say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from contexture.kafka.replica import ReplicaRecord
from contexture.sending.dead_letter import HEADER


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that can never be sent.

    Attributes:
        at: when it was put aside.
        error: Kafka's name of it.
        message: what was said.
        by: `client` or `broker`.
        topic: which it was meant for.
        outbox, shard, position: where it stands.
        key: its key; None where it has none, or one that was too long to be kept.
        value_bytes: the size of its value; None for a tombstone, and where the size is not told.
        place: partition and offset of the dead letter.
    """

    at: datetime | None
    error: str
    message: str
    by: str
    topic: str
    outbox: str
    shard: int
    position: int
    key: bytes | None
    value_bytes: int | None
    place: tuple[int, int]


def refused_records(records: Iterable[ReplicaRecord]) -> Iterator[RefusedRecord]:
    """What the records of a dead-letter topic tell; what somebody else wrote there is left out."""
    for record in records:
        told = {
            name.removeprefix(HEADER): (value or b"").decode(errors="replace")
            for name, value in record.headers
            if name.startswith(HEADER)
        }
        if (
            {"outbox", "shard", "position"} <= told.keys()
            and told["shard"].isdecimal()
            and told["position"].isdecimal()
        ):
            yield _refused(record, told)


def _refused(record: ReplicaRecord, told: dict[str, str]) -> RefusedRecord:
    return RefusedRecord(
        at=None if record.timestamp_ms is None else datetime.fromtimestamp(record.timestamp_ms / 1000, UTC),
        error=told.get("error", ""),
        message=told.get("message", ""),
        by=told.get("by", ""),
        topic=told.get("topic", ""),
        outbox=told["outbox"],
        shard=int(told["shard"]),
        position=int(told["position"]),
        key=record.key,
        value_bytes=_size(record, told),
        place=(record.partition, record.offset),
    )


def _size(record: ReplicaRecord, told: dict[str, str]) -> int | None:
    if record.value is not None:
        return len(record.value)
    given = told.get("value_bytes", "")
    return int(given) if given.isdecimal() else None
