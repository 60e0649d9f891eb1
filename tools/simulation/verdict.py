"""What became of a schedule, seen from the brokers' logs: nothing of it goes through Contexture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tools.simulation.brokers import LEDGERS, Brokers
from tools.simulation.loads import Load

LAWS = ("lost", "doubled", "reordered", "torn", "stale")
"""What must never happen; `anomalies` names others that a person would notice."""


@dataclass(slots=True)
class Verdict:
    """What is wrong with a schedule.

    Attributes:
        anomalies: how often, by kind: `lost` records of a concluded outbox; `doubled` ones; `reordered` within a key;
            `torn` transactions; `stale` records of an outbox that was given up above those of a later one; `unseen`
            records of a shard whose sender had ended well; `refused` without a reason; `stuck`.
        sentences: a sentence for each.
        outcome: how it ended: `concluded`, `superseded`, or `refused` with a reason.
        calls: of clients.
        killed, stopped: processes.
    """

    anomalies: Counter[str] = field(default_factory=Counter)
    sentences: list[str] = field(default_factory=list)
    outcome: str = "concluded"
    calls: int = 0
    killed: int = 0
    stopped: int = 0

    def add(self, kind: str, count: int, sentence: str) -> None:
        """Notes an anomaly."""
        if count:
            self.anomalies[kind] += count
            self.sentences.append(f"{kind} {count}: {sentence}")


def judge(brokers: Brokers, loads: Sequence[Load], concluded: Sequence[bool], verdict: Verdict) -> None:
    """Adds what the topics show.

    Args:
        brokers: with nothing under way.
        loads: the outboxes, in their order.
        concluded: which of them must be there whole; of others whole transactions may be.
        verdict: what is added to.
    """
    lanes = _lanes(brokers)
    for load, must in zip(loads, concluded, strict=True):
        seen = Counter(value for lane in lanes.values() for value in lane if value in load.values)
        missing = sorted(value for value in load.values if value not in seen)
        if must:
            verdict.add("lost", len(missing), f"{missing[:4]}")
        twice = sorted(value for value, count in seen.items() if count > 1)
        verdict.add("doubled", len(twice), f"{twice[:4]}")
        _judge_transactions(load, seen, verdict)
        for place, lane in lanes.items():
            positions = [load.values[value][2] for value in _firsts(lane) if value in load.values]
            verdict.add("reordered", sum(one > two for one, two in pairwise(positions)), f"{place}: {lane}")
    _judge_later(lanes, loads, verdict)


def missing(brokers: Brokers, load: Load, shard: int) -> list[bytes]:
    """Returns the records of a shard that no reader of committed records sees."""
    seen = {each.value for topic in brokers.topics.values() for part in topic.partitions for each in part.visible()}
    return [value for value, (number, _, _) in load.values.items() if number == shard and value not in seen]


def _judge_transactions(load: Load, seen: Counter[bytes], verdict: Verdict) -> None:
    whole: defaultdict[tuple[int, int], list[bool]] = defaultdict(list)
    for value, (shard, transaction, _) in load.values.items():
        whole[shard, transaction].append(value in seen)
    torn = [each for each, found in sorted(whole.items()) if any(found) and not all(found)]
    verdict.add("torn", len(torn), f"{load.manifest.outbox}: shard and transaction {torn[:4]}")


def _judge_later(lanes: dict[tuple[object, ...], list[bytes]], loads: Sequence[Load], verdict: Verdict) -> None:
    sequences = {value: load.manifest.sequence for load in loads for value in load.values}
    for place, lane in lanes.items():
        found = [sequences[value] for value in lane if value in sequences]
        verdict.add("stale", sum(one > two for one, two in pairwise(found)), f"{place}: {lane}")


def _lanes(brokers: Brokers) -> dict[tuple[object, ...], list[bytes]]:
    lanes: defaultdict[tuple[object, ...], list[bytes]] = defaultdict(list)
    for topic in brokers.topics.values():
        if topic.name.startswith(LEDGERS):
            continue
        for part in topic.partitions:
            for record in part.visible():
                lanes[part.topic, part.number, record.key].append(record.value or b"")
    return lanes


def _firsts(lane: Sequence[bytes]) -> list[bytes]:
    return list(dict.fromkeys(lane))
