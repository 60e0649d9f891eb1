"""What happens in a schedule, all of it drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tools.simulation.network import Weather

RESTARTED: Final = "restarted"
REPLACED: Final = "replaced"
RESHARDED: Final = "resharded"
EMPTIED: Final = "emptied"
SCENARIOS: Final = (RESTARTED, REPLACED, RESHARDED, EMPTIED)
"""What befalls senders: killed; stopped and replaced; of an outbox that was given up, `publish.shards` changed; killed,
and the ledger is emptied before the next one."""

QUIET: Final = "quiet"
NETWORK: Final = "network"
MARKERS: Final = "markers"
LEADERS: Final = "leaders"
ALL: Final = "all"
WEATHERS: Final = (QUIET, NETWORK, MARKERS, LEADERS, ALL)
"""What befalls requests: nothing; they come late, never, or their answers get lost; leaders are lost at the end of a
transaction, and markers with them; leaders are lost while brokers are asked; all of it."""

# Calls that a sender of one shard makes, about; most of what happens should happen within them.
_CALLS = 60
_OTHERS: Final = ("InitProducerId", "AddPartitionsToTxn", "Produce")


@dataclass(frozen=True, slots=True)
class Fate:
    """What befalls one attempt of a sender, by the number of its call (0: nothing).

    Attributes:
        dies_at: SIGKILL.
        stops_at, stops_seconds: SIGSTOP, and how long until SIGCONT.
        replaced_seconds: how long after it was stopped another one begins as well; None: no other one.
        delay_seconds: how long after the one before it begins.
    """

    dies_at: int = 0
    stops_at: int = 0
    stops_seconds: float = 0.0
    replaced_seconds: float | None = None
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule.

    Attributes:
        seed: of it.
        scenario: which of `SCENARIOS`.
        shards: of the first outbox and of the second one.
        records, transaction: of each outbox, and of each transaction.
        fates: of the attempts of each shard of the first outbox, then of the second.
        abandoned_after: in which call of its first sender the first outbox is abandoned (resharded).
        emptied: which partitions of the ledger lose their records when the first sender has ended.
        begins_anew: a sender that follows is of a new run, which looks at the ledger first, and not of a cleared task.
        sky: which of `WEATHERS`.
        weather: what befalls requests.
        batch_records: of a request.
        is_single: there is no second outbox.
        compacts: the ledger is compacted between senders.
    """

    seed: int
    scenario: str
    shards: tuple[int, int]
    records: int
    transaction: int
    fates: Mapping[tuple[int, int], tuple[Fate, ...]]
    abandoned_after: float
    emptied: str
    begins_anew: bool
    sky: str = QUIET
    weather: Weather = field(default_factory=Weather)
    batch_records: int = 3
    is_single: bool = False
    compacts: bool = False


def plan_of(seed: int, scenario: str | None = None, weather: str | None = None) -> Plan:
    """Returns the schedule of a seed.

    Args:
        seed: any number.
        scenario, weather: of this kind alone; None for any.
    """
    draw = random.Random(seed * 7919 + 17)
    kind = draw.choice((RESTARTED, RESTARTED, RESTARTED, REPLACED, REPLACED, RESHARDED, RESHARDED, EMPTIED))
    kind = scenario or kind
    sky = QUIET if kind == EMPTIED else draw.choice((QUIET, NETWORK, NETWORK, MARKERS, MARKERS, LEADERS, ALL))
    sky = weather or sky
    first = draw.choice((1, 1, 1, 2, 2, 3))
    second = draw.choice([each for each in (1, 2, 3) if each != first]) if kind == RESHARDED else first
    fates = {
        (outbox, shard): _fates(draw, kind, outbox)
        for outbox, count in enumerate((first, second))
        for shard in range(count)
    }
    return Plan(
        seed=seed,
        scenario=kind,
        shards=(first, second),
        records=draw.choice((4, 6, 9)) * first,
        transaction=draw.choice((2, 3, 5)),
        fates=fates,
        abandoned_after=draw.uniform(0.05, 0.6),
        emptied=draw.choice(("all", "all", "one")),
        begins_anew=draw.random() < 0.5,
        sky=sky,
        weather=_weather(draw, sky),
        batch_records=draw.choice((1, 2, 3, 5)),
        is_single=kind != RESHARDED and draw.random() < 0.5,
        compacts=draw.random() < 0.2,
    )


def _fates(draw: random.Random, kind: str, outbox: int) -> tuple[Fate, ...]:
    if outbox == 1 and (kind == EMPTIED or draw.random() < 0.6):
        return (Fate(delay_seconds=draw.random() * 0.8),)
    if kind == EMPTIED:
        return (Fate(dies_at=draw.randint(15, _CALLS)),)
    if kind == RESTARTED:
        count = draw.choice((0, 1, 1, 2, 3))
        return tuple(Fate(dies_at=draw.randint(5, _CALLS)) for _ in range(count))
    if kind == RESHARDED:
        return (
            Fate(stops_at=draw.randint(10, _CALLS), stops_seconds=0.2 + 4 * draw.random(), delay_seconds=draw.random()),
        )
    return tuple(_stopped(draw) for _ in range(draw.choice((1, 1, 2))))


def _stopped(draw: random.Random) -> Fate:
    return Fate(
        dies_at=draw.randint(5, _CALLS) if draw.random() < 0.2 else 0,
        stops_at=draw.randint(5, _CALLS),
        stops_seconds=draw.choice((0.3, 1.0, 3.0, 15.0)) * (0.5 + draw.random()),
        replaced_seconds=draw.choice((0.05, 0.3, 1.0)) * draw.random() if draw.random() < 0.85 else None,
    )


def _weather(draw: random.Random, kind: str) -> Weather:
    weather = Weather(late_markers=draw.choice((0.0, 0.0, 0.2)))
    if kind in {NETWORK, ALL}:
        often, seldom = draw.choice((0.05, 0.2, 0.4)), draw.choice((0.0, 0.01, 0.03))
        weather.held = {"EndTxn": often, **dict.fromkeys(_OTHERS, seldom)}
        weather.unanswered = {"EndTxn": often / 3, **dict.fromkeys(_OTHERS, seldom)}
        weather.dropped = {"EndTxn": often / 4, **dict.fromkeys(_OTHERS, seldom)}
        weather.held_seconds = draw.choice((0.3, 1.0, 5.0))
    leaders: dict[str, float] = {}
    if kind in {MARKERS, ALL}:
        leaders["EndTxn"] = draw.choice((0.1, 0.3))
        weather.lost_markers = draw.choice((0.5, 1.0))
    if kind in {LEADERS, ALL}:
        seldom = draw.choice((0.005, 0.01, 0.03))
        leaders |= {"ListOffsets": seldom, "Metadata": seldom, "Fetch": seldom / 4, "Produce": seldom}
    weather.leader_lost = leaders
    weather.leaderless_seconds = draw.choice((0.3, 2.0, 6.0))
    return weather
