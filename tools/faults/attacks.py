"""Attacks of a hostile network: one request of the protocol is held, delayed, doubled, lost, or its answer is.

Every attack has a place: a fate, the request that it befalls, whether the sender is killed at that instant, and, for
what arrives late, the moment of its arrival. `places` lists all of them; a seed chooses their order, the sizes of
transactions and which of several like requests is met.

A late copy of a request that was answered at once is apart (`relayed`): TCP delivers no byte twice, so only a relay
that speaks Kafka's protocol, and repeats requests by itself, can do that.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tools.faults.kafka_proxy import Answer, Cut, Delay, DropAnswer, Duplicate, Fate, Hold, KafkaProxy, Request, Stall

REQUESTS: Final = ("EndTxn commit", "EndTxn abort", "InitProducerId", "AddPartitionsToTxn", "Produce")

IN_NEXT_OUTBOX: Final = "in the next outbox"
AFTER_OUTBOX: Final = "after the outbox"
ARRIVALS: Final = (
    *("at the next InitProducerId", "at the next AddPartitionsToTxn", "at the next Produce", "at the next EndTxn"),
    *("at the second EndTxn", AFTER_OUTBOX, IN_NEXT_OUTBOX),
)
"""When a late request reaches the broker: when the broker has answered the next request of a kind, or later."""

STALL_SECONDS: Final = 13.5
"""After so long, a client whose time-out is 10 s has connected again, and its first bytes arrive all the same."""

_LATE: Final = "old"
_LATE_ANSWER_SECONDS: Final = 5.0
_AWAITED: Final = {
    "at the next InitProducerId": ("InitProducerId", 1),
    "at the next AddPartitionsToTxn": ("AddPartitionsToTxn", 1),
    "at the next Produce": ("Produce", 1),
    "at the next EndTxn": ("EndTxn", 1),
    "at the second EndTxn": ("EndTxn", 2),
    IN_NEXT_OUTBOX: ("Produce", 1),
}


@dataclass(frozen=True, slots=True)
class Place:
    """What befalls which request.

    Attributes:
        fate: `hold`, `delay`, `duplicate`, `cut`, `drop answer`, `stall` or `late copy`.
        request: one of `REQUESTS`.
        is_killed: the sender is killed as soon as the request is met, and replaced.
        arrival: one of `ARRIVALS` for what is held or copied, else empty.
    """

    fate: str
    request: str
    is_killed: bool
    arrival: str = ""

    def __str__(self) -> str:
        late = f", arrives {self.arrival}" if self.arrival else ""
        return f"{self.fate} {self.request}, {'killed' if self.is_killed else 'lives'}{late}"


def places() -> list[Place]:
    """Every place but stalls and late copies: a fate, a request, a sender that lives or is killed, an arrival."""
    return [
        Place(fate, request, is_killed, arrival)
        for fate in ("hold", "duplicate", "delay", "cut", "drop answer")
        for arrival in (ARRIVALS if fate == "hold" else ("",))
        for request in REQUESTS
        for is_killed in (False, True)
    ]


def relayed() -> list[Place]:
    """Late copies of requests that were answered at once, of senders that live."""
    return [
        Place("late copy", request, is_killed=False, arrival=arrival) for arrival in ARRIVALS for request in REQUESTS
    ]


def stalls() -> list[Place]:
    """The network takes nothing for 13.5 s from a request on, as when packets are lost; 14 s and more each."""
    return [Place("stall", request, is_killed=False) for request in ("EndTxn commit", "EndTxn abort", "Produce")]


def planned(attacks: int, seed: int, turns: Callable[[], list[Place]] = places) -> list[Place]:
    """So many attacks: each place comes once before any comes twice, in an order of the seed's."""
    chance = random.Random(f"hostile network/{seed}")
    listed: list[Place] = []
    while len(listed) < attacks:
        turn = turns()
        chance.shuffle(turn)
        listed += turn
    return listed[:attacks]


class Attack:
    """An attack while it goes on; it sits in the proxy from its making to `end`.

    Args:
        proxy: in front of the broker.
        place: what befalls which request.
        number: which of several like requests is met, from 1.
        delay_seconds: of what is delayed.

    Attributes:
        is_met: set once the request was met.
        late_answer: what the broker said to the late request, by Kafka's name; None while it said nothing.
    """

    def __init__(self, proxy: KafkaProxy, place: Place, number: int, delay_seconds: float) -> None:
        self.is_met = threading.Event()
        self.late_answer: str | None = None
        self._proxy, self._place, self._number, self._delay_seconds = proxy, place, number, delay_seconds
        self._late_answered = threading.Event()
        self._outbox_is_sent = False
        self._awaited = _AWAITED.get(place.arrival)
        self._answers = 0
        proxy.fate, proxy.answered = self._fate, self._answered

    def outbox_sent(self) -> None:
        """The attacked outbox is sent: what arrives after it, or should have before, arrives now."""
        self._outbox_is_sent = True
        if self._place.arrival != IN_NEXT_OUTBOX:
            self._arrive()

    def end(self) -> None:
        """The next outbox is sent too: nothing is held any more."""
        self._arrive()
        self._proxy.reset()

    def _arrive(self) -> None:
        self._proxy.release(_LATE)
        if self.is_met.is_set() and self._place.arrival:
            self._late_answered.wait(_LATE_ANSWER_SECONDS)

    def _fate(self, request: Request) -> Fate | None:
        if self.is_met.is_set() or not self._is_target(request):
            return None
        self._number -= 1
        if self._number:
            return None
        self.is_met.set()
        return self._made()

    def _is_target(self, request: Request) -> bool:
        if request.api != "EndTxn":
            return request.api == self._place.request
        return self._place.request == ("EndTxn commit" if request.commits else "EndTxn abort")

    def _made(self) -> Fate:
        match self._place.fate:
            case "hold":
                return Hold(_LATE)
            case "delay":
                return Delay(self._delay_seconds, cut=True)
            case "duplicate":
                return Duplicate()
            case "late copy":
                return Duplicate(_LATE)
            case "cut":
                return Cut()
            case "stall":
                return Stall(STALL_SECONDS)
            case _:
                return DropAnswer()

    def _answered(self, answer: Answer) -> None:
        if answer.request.is_stale:
            self.late_answer = answer.error
            self._late_answered.set()
            return
        if self._awaited is None or not self.is_met.is_set():
            return
        if self._place.arrival == IN_NEXT_OUTBOX and not self._outbox_is_sent:
            return
        api, count = self._awaited
        self._answers += answer.request.api == api
        if self._answers == count:
            self._proxy.release(_LATE)


def met(answers: Sequence[str | None]) -> dict[str, int]:
    """How often brokers said what to late requests; those of which nothing is known are left out."""
    return {name: answers.count(name) for name in sorted({each for each in answers if each is not None})}
