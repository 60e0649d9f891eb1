"""The record that stands in a dead-letter topic for one that can never be sent: why, and as much of it as fits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, cast

from contexture.errors import RejectedError
from contexture.kafka.ports import Headers
from contexture.kafka.rows import Row

if TYPE_CHECKING:
    from contexture.kafka.replica import ReplicaRecord

HEADER: Final = "contexture_refused_"
"""What the names of the headers that say why begin with."""

_ANY_PARTITION: Final = -1
_NOW: Final = 0
_LONGEST_KEY: Final = 65_536


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Where records go that can never be sent.

    Attributes:
        topic: the dead-letter topic; it must be there.
        limit: how many of a shard may go there, at most: more of them are a fault of configuration.
    """

    topic: str
    limit: int


@dataclass(frozen=True, slots=True)
class RefusedPlace:
    """Where a refused record stands: its outbox, the shard, and its position in it."""

    outbox: str
    shard: int
    position: int


def dead_letter(topic: str, row: Row, refused: RejectedError, place: RefusedPlace, *, bare: bool = False) -> Row:
    """The dead letter of a record, as arguments of the client's `produce`.

    It has the record's key, value and headers, and headers that say why (`contexture_refused_...`); no partition and
    no time of its own, for these may be what was refused.

    Args:
        topic: the dead-letter topic.
        row: the record.
        refused: why it can't be sent.
        place: where it stands.
        bare: without its value, and without a key of more than 64 KiB: instead their sizes and SHA-256.
    """
    meant, value, key = str(row[0]), cast("bytes | None", row[1]), cast("bytes | None", row[2])
    given = cast("Headers | None", row[7] if len(row) > 7 else None)
    why = {
        "error": str(refused.context.get("error", type(refused).__name__)),
        "message": refused.message,
        "by": "broker" if refused.context.get("status") == 3 else "client",
        "topic": meant,
        "outbox": place.outbox,
        "shard": str(place.shard),
        "position": str(place.position),
        **_time(row),
        **_left_out("value", value, leave=bare),
        **_left_out("key", key, leave=bare and _is_long(key)),
    }
    if value is None:
        why["value"] = "tombstone"
    headers = [*(given or ()), *((f"{HEADER}{name}", text.encode()) for name, text in why.items())]
    kept_value = None if "value_sha256" in why else value
    kept_key = None if "key_sha256" in why else key
    return topic, kept_value, kept_key, _ANY_PARTITION, None, None, _NOW, headers


def left_of(key: bytes | None, value: bytes | None) -> tuple[tuple[bytes | None, bytes | None], ...]:
    """Key and value of a record's dead letter: as they were, or as a bare one has them."""
    return (key, value), (None if _is_long(key) else key, None)


def dead_letters_found(records: Iterable[ReplicaRecord], outbox: str) -> dict[int, frozenset[int]]:
    """The positions of an outbox's records, by shard, that are among the records of a dead-letter topic."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for record in records:
        reasons = _reasons(record)
        if reasons.get(f"{HEADER}outbox") == outbox:
            found[int(reasons[f"{HEADER}shard"])].add(int(reasons[f"{HEADER}position"]))
    return {shard: frozenset(positions) for shard, positions in found.items()}


def position_of(letter: ReplicaRecord, outbox: str, shard: int) -> int | None:
    """The position of the record that a dead letter stands for; None where it is of another outbox or shard."""
    reasons = _reasons(letter)
    if (reasons.get(f"{HEADER}outbox"), reasons.get(f"{HEADER}shard")) != (outbox, str(shard)):
        return None
    return int(reasons[f"{HEADER}position"])


def _reasons(letter: ReplicaRecord) -> dict[str, str]:
    return {name: (value or b"").decode() for name, value in letter.headers if name.startswith(HEADER)}


def _is_long(key: bytes | None) -> bool:
    return len(key or b"") > _LONGEST_KEY


def _time(row: Row) -> dict[str, str]:
    return {"timestamp": str(row[6])} if len(row) > 6 and row[6] else {}


def _left_out(name: str, content: bytes | None, *, leave: bool) -> dict[str, str]:
    if content is None or not leave:
        return {}
    return {f"{name}_bytes": str(len(content)), f"{name}_sha256": sha256(content).hexdigest()}
