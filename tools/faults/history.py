"""What a reader saw of a run while it went on, and what that proves.

Nothing here knows Kafka's client or Contexture: `tools.faults.follower` records a history, `prove` judges it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tools.faults.loads import Expected
from tools.faults.verdict import Found, Verdict, judge

Place = tuple[str, int]
"""A topic and a partition of it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A look at all partitions; its three steps come in this order.

    Attributes:
        seen: how many visible records the reader had got before the cut began.
        high: then, where the log of each partition ended, undecided records included.
        stable: after that, up to where each partition could be read by a read-committed reader.
        visible: how many visible records the reader had got when it had read every partition up to `stable`.
        appended: how many records the read-uncommitted reader had got when it had read every partition up to `high`.
    """

    seen: int
    high: Mapping[Place, int]
    stable: Mapping[Place, int]
    visible: int
    appended: int

    @property
    def is_settled(self) -> bool:
        """Whether everything that was in the logs at the cut is decided and read."""
        return all(self.stable.get(place, -1) >= end for place, end in self.high.items())


@dataclass(slots=True)
class History:
    """A run as it was followed.

    Attributes:
        visible: records in the order in which a read-committed reader got them.
        appended: marks of records in the order in which a read-uncommitted reader got them, aborted ones included.
        cuts: looks at all partitions, in their order.
    """

    visible: list[Found] = field(default_factory=list)
    appended: list[bytes] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)


def prove(
    history: History,
    found: Sequence[Found],
    required: Sequence[Expected],
    allowed: Sequence[Expected] = (),
) -> Verdict:
    """Judges a run by its history and by what was found when it was over.

    A commit is decided at one instant, and its markers reach the partitions one by one. So no consumer can ask that all
    records of a transaction appear in one poll, not even those of one partition: another producer's open transaction
    may hold back the later ones. What one visible record proves is that its transaction was committed, and therefore
    that all of its records were written before. A transaction is **atomic** if this holds at every cut that begins
    after one of its records was seen:

    1. all of its records are in the logs, below the ends that the cut found;
    2. if only one line is sent, and a record of a later transaction was seen too, all of them are visible: a sender
       begins a transaction when the markers of the one before are written, and no other producer hides them;
    3. if the cut is settled (every partition readable up to the end found before), all of them are visible;

    and if, when the run is over, all of its records are found, or none.

    Args:
        history: of the run.
        found: what is there in the end, by partition in its order.
        required: what must be there, in sending order.
        allowed: what may be there before it: of an outbox that was given up, whole transactions.
    """
    everything = [*allowed, *required]
    torn = _torn_at_cuts(history, everything) | _torn_in_the_end(found, everything)
    there = {(record.topic, record.partition, record.offset, record.mark) for record in found}
    seen = {(record.topic, record.partition, record.offset, record.mark) for record in history.visible}
    return replace(
        judge(required, found, allowed),
        torn=len(torn),
        scattered=_scattered([*history.visible, *found]),
        vanished=len(seen - there),
    )


def _torn_at_cuts(history: History, everything: Sequence[Expected]) -> set[tuple[object, ...]]:
    """Transactions of which something was visible when it should not have been."""
    by_mark = {record.mark: record for record in everything}
    whole, ranks = _transactions(everything)
    is_one_line = len({line for _, line in whole.values()}) == 1
    torn: set[tuple[object, ...]] = set()
    seen: set[tuple[object, ...]] = set()
    visible: set[bytes] = set()
    appended: set[bytes] = set()
    latest: dict[object, int] = {}
    seen_until = visible_until = appended_until = 0
    for cut in history.cuts:
        for record in history.visible[seen_until : cut.seen]:
            if record.mark in by_mark:
                sent = by_mark[record.mark]
                seen.add(sent.transaction)
                latest[sent.line] = max(latest.get(sent.line, -1), ranks[sent.transaction])
        visible |= {record.mark for record in history.visible[visible_until : cut.visible]}
        appended |= set(history.appended[appended_until : cut.appended])
        seen_until, visible_until, appended_until = cut.seen, cut.visible, cut.appended
        for transaction in seen - torn:
            marks, line = whole[transaction]
            is_over = cut.is_settled or (is_one_line and latest[line] > ranks[transaction])
            if not marks <= (visible if is_over else appended | visible):
                torn.add(transaction)
    return torn


def _torn_in_the_end(found: Sequence[Found], everything: Sequence[Expected]) -> set[tuple[object, ...]]:
    there = {record.mark for record in found}
    return {
        transaction
        for transaction, (marks, _) in _transactions(everything)[0].items()
        if 0 < len(marks & there) < len(marks)
    }


def _transactions(
    everything: Sequence[Expected],
) -> tuple[dict[tuple[object, ...], tuple[set[bytes], object]], dict[tuple[object, ...], int]]:
    """Returns the marks and the line of each transaction, and its place in the order of sending."""
    whole: dict[tuple[object, ...], tuple[set[bytes], object]] = {}
    for record in everything:
        whole.setdefault(record.transaction, (set(), record.line))[0].add(record.mark)
    return whole, {transaction: rank for rank, transaction in enumerate(whole)}


def _scattered(records: Sequence[Found]) -> int:
    """Keys of a topic that were seen in more than one of its partitions."""
    partitions: defaultdict[tuple[str, bytes | None], set[int]] = defaultdict(set)
    for record in records:
        partitions[record.topic, record.key].add(record.partition)
    return sum(len(each) > 1 for each in partitions.values())
