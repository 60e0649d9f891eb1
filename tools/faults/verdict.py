"""What a read-committed reader found, against what was sent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tools.faults.loads import Expected


@dataclass(frozen=True, slots=True)
class Found:
    """A record as a consumer got it; those of one partition come in its order."""

    mark: bytes
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong; nothing if all are 0.

    Attributes:
        lost: records that should be there and are not.
        doubled: further copies of records.
        reordered: records that stand after one that was sent later.
        strange: records that no sender sent so, or that are seen without the rest of their transaction.
        torn: transactions that were visible in part; `tools.faults.history.prove` defines it.
        scattered: keys that are in more than one partition of a topic.
        vanished: records that were visible once and are gone.
    """

    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    strange: int = 0
    torn: int = 0
    scattered: int = 0
    vanished: int = 0

    @property
    def is_clean(self) -> bool:
        """Nothing is wrong."""
        return self == Verdict()


def judge(required: Sequence[Expected], found: Sequence[Found], allowed: Sequence[Expected] = ()) -> Verdict:
    """Compares.

    Args:
        required: what must be there, in sending order.
        found: what is there.
        allowed: what may be there, before all that is required: of an outbox that was given up, whole transactions.
    """
    known = {record.mark: (rank, record) for rank, record in enumerate([*allowed, *required])}
    counts = Counter(record.mark for record in found)
    return Verdict(
        lost=sum(record.mark not in counts for record in required),
        doubled=sum(count - 1 for mark, count in counts.items() if mark in known),
        reordered=_reordered(known, found),
        strange=sum(not _is_as_sent(record, known) for record in found) + _torn(allowed, counts),
    )


def _reordered(known: dict[bytes, tuple[int, Expected]], found: Sequence[Found]) -> int:
    ranks: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for record in found:
        rank, sent = known.get(record.mark, (0, None))
        for lane in sent.lanes if sent else ():
            ranks[record.topic, record.partition, lane].append(rank)
    return sum(before > after for lane in ranks.values() for before, after in pairwise(lane))


def _is_as_sent(record: Found, known: dict[bytes, tuple[int, Expected]]) -> bool:
    if record.mark not in known:
        return False
    sent = known[record.mark][1]
    return (record.topic, record.key, record.value) == (sent.topic, sent.key, sent.value)


def _torn(allowed: Sequence[Expected], counts: Counter[bytes]) -> int:
    """Records that are seen though others of their transaction are not."""
    seen: defaultdict[tuple[object, ...], list[bool]] = defaultdict(list)
    for record in allowed:
        seen[record.transaction].append(record.mark in counts)
    return sum(sum(each) for each in seen.values() if not all(each))
