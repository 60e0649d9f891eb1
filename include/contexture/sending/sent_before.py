"""How many transactions of an outbox's shard lie in the topics, as far as the topics can tell.

A transaction is seen whole or not at all, and transactions come in order. So one record of it that was sent for certain
shows it and all before it; one that was not sent for certain shows that it and all after it were not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

Place = tuple[str, bytes | None]
"""A topic and a key."""

Headers = Iterable[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class OutboxRecord:
    """A record of an outbox: where it goes, in which transaction, and a digest of what it holds."""

    transaction: int
    place: Place
    digest: bytes


@dataclass(frozen=True, slots=True)
class SentTransactions:
    """How many transactions of a shard were sent: `certain` at least, `possible` at most."""

    certain: int
    possible: int


def digest_of(value: bytes | None, headers: Headers) -> bytes:
    """What a record holds, in 16 bytes."""
    hashed = blake2b(b"-" if value is None else b"+" + value, digest_size=16)
    for name, content in sorted((name, content or b"") for name, content in headers):
        hashed.update(b"%d:%d:" % (len(name), len(content)) + name.encode() + content)
    return hashed.digest()


def transactions_sent(
    records: Iterable[OutboxRecord],
    newest: Mapping[Place, bytes],
    anywhere: frozenset[bytes] | set[bytes],
    *,
    transactions: int,
    differs: bool,
    known: int = 0,
) -> SentTransactions:
    """How many were sent.

    Args:
        records: of the shard, in sending order.
        newest: the digest of the last record of each topic and key in Kafka.
        anywhere: digests of all records in Kafka that have no key.
        transactions: how many the shard has.
        differs: each key's first record differs from what Kafka held before (an outbox of changes); of a full run it
            may be the same.
        known: how many were sent for certain, by other signs.
    """
    by_place: defaultdict[Place, list[OutboxRecord]] = defaultdict(list)
    for record in records:
        by_place[record.place].append(record)
    certain, possible = known, transactions
    for place, sent in by_place.items():
        least, most = _of_keyless(sent, anywhere) if place[1] is None else _of_key(sent, newest.get(place), differs)
        certain, possible = max(certain, least), min(possible, transactions if most is None else most)
    return SentTransactions(min(certain, possible), possible)


def _of_key(sent: Sequence[OutboxRecord], newest: bytes | None, differs: bool) -> tuple[int, int | None]:
    """At least and at most so many transactions, by the records of one key; None for no limit."""
    matches = [index for index, record in enumerate(sent) if record.digest == newest]
    if not matches:
        return 0, sent[0].transaction
    following = matches[-1] + 1
    most = sent[following].transaction if following < len(sent) else None
    # A later record of the key may hold what Kafka held before all of them.
    return (sent[0].transaction + 1 if differs and matches == [0] else 0), most


def _of_keyless(sent: Sequence[OutboxRecord], anywhere: frozenset[bytes] | set[bytes]) -> tuple[int, int | None]:
    missing = [record.transaction for record in sent if record.digest not in anywhere]
    return 0, missing[0] if missing else None
