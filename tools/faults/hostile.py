"""A hostile network between senders and their broker, and what becomes of Contexture's sender and the plain client.

Run by `python -m tools.faults.hostile` (`make hostile`). Each attack is judged as any run of the fault matrix. After
the attacked outbox a second one is sent by the same name, because what arrives late may hit that one.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from contexture.errors import RetriableError
from contexture.kafka.errors import BrokersAwayError
from contexture.sending.testing import MemoryShard
from tools.faults.attacks import REQUESTS, Attack, Place, met, places, planned, relayed, stalls
from tools.faults.kafka_proxy import KafkaProxy, behind_proxy
from tools.faults.loads import Expected, Load, context_load, paced
from tools.faults.matrix import BROKER_CONFIG
from tools.faults.moments import Moment
from tools.faults.plain_client import send_plainly
from tools.faults.probe import Aim
from tools.faults.report import complaints
from tools.faults.supervisor import SenderProcess
from tools.faults.trial import Cell, Outcome, Trial, failing_loudly

CONTEXTURE: Final = "contexture"
PLAIN: Final = "plain client"

_MOST_TASKS: Final = 4
_MEETING_SECONDS: Final = 60.0
_TRANSACTIONS: Final = (4, 8)
_RECORDS: Final = (8, 24)
_DELAY_SECONDS: Final = (0.02, 1.0)
_WIDTH: Final = 150


class Kind(StrEnum):
    """What befalls requests."""

    NETWORK = "network"
    STALL = "stall"
    RELAY = "relay"


_TURNS: Final = {Kind.NETWORK: places, Kind.STALL: stalls, Kind.RELAY: relayed}


@dataclass(frozen=True, slots=True)
class Attacked:
    """What came of an attack.

    Attributes:
        client: who was attacked.
        place: how.
        outcome: as of any run of the matrix.
        is_met: the request came; an attack whose request never came counts for nothing.
        late_answer: the broker's to the late request, by Kafka's name.
        ended: the error that a plain client ended with, by Kafka's name.
    """

    client: str
    place: Place
    outcome: Outcome
    is_met: bool
    late_answer: str | None
    ended: str | None = None

    @property
    def is_broken(self) -> bool:
        """A record is lost, doubled or in another order, or a transaction is torn."""
        return not self.outcome.verdict.is_clean


def attack(proxy: KafkaProxy, bootstrap: str, place: Place, number: int, seed: int) -> Attacked:
    """Attacks Contexture's sender once: the attacked outbox, tried again as Airflow does, and the next one."""
    trial, one, two = _trial(bootstrap, place, number, seed)
    struck = _attack(trial, proxy, place)
    _send_attacked(trial, one.shards[0], struck, place)
    struck.outbox_sent()
    _finish(trial, two.shards[0])
    struck.end()
    outcome = trial.outcome([*one.records, *two.records])
    return Attacked(CONTEXTURE, place, outcome, struck.is_met.is_set(), struck.late_answer)


def attack_plain(proxy: KafkaProxy, bootstrap: str, place: Place, number: int, seed: int) -> Attacked:
    """Attacks the plain client in the same way. What it must have sent is what it was said to be committed."""
    trial, one, two = _trial(bootstrap, place, number, seed)
    struck = _attack(trial, proxy, place)
    gives_up = 1 if place.request == "EndTxn abort" else None
    required: list[Expected] = []
    allowed: list[Expected] = []
    ended: str | None = None
    for load in (one, two):
        ending = send_plainly(trial.client, trial.publication, load.shards[0], gives_up if load is one else None)
        ended = ended or ending.error
        required += [each for each in load.records if each.transaction[-1] in ending.committed]
        allowed += [each for each in load.records if each.transaction[-1] == ending.uncertain]
        if load is one:
            struck.outbox_sent()
    struck.end()
    outcome = trial.outcome(required, allowed)
    return Attacked(PLAIN, place, outcome, struck.is_met.is_set(), struck.late_answer, ended)


def _trial(bootstrap: str, place: Place, number: int, seed: int) -> tuple[Trial, Load, Load]:
    trial = Trial(Cell(number, f"hostile network: {place}", Moment.MID_PRODUCE, seed), bootstrap)
    if place.fate == "stall":
        # A client that waits for its answers for a minute, as the default is, would not connect again within a stall.
        trial.further = {"socket.timeout.ms": 10_000}
        trial.timeout_ms = 60_000
    # Of a transaction that is sent at once, nothing is left for what arrives late to hit.
    transaction = trial.random.randint(*_RECORDS)
    records = transaction * trial.random.randint(*_TRANSACTIONS)
    topics = trial.make_topics(2)
    one = context_load(topics, outbox="one", records=records, transaction=transaction)
    two = context_load(topics, outbox="two", sequence=2, records=3 * transaction, transaction=transaction)
    return trial, paced(one), paced(two)


def _attack(trial: Trial, proxy: KafkaProxy, place: Place) -> Attack:
    # A sender makes one InitProducerId, and gives up once; of the others, one of the first three is met.
    number = 1 if place.request in {"InitProducerId", "EndTxn abort"} else trial.random.randint(1, 3)
    return Attack(proxy, place, number, trial.random.uniform(*_DELAY_SECONDS))


def _send_attacked(trial: Trial, shard: MemoryShard, struck: Attack, place: Place) -> None:
    gives_up = Aim(Moment.MID_PRODUCE, 1, trial.random.randint(1, 2)) if place.request == "EndTxn abort" else None
    with trial.sender(shard, gives_up=gives_up) as sender:
        if place.is_killed:
            _kill(trial, sender, struck)
        elif not _ended_well(trial, sender):
            _finish(trial, shard, _MOST_TASKS - 1)
    if place.is_killed:
        _finish(trial, shard)


def _kill(trial: Trial, sender: SenderProcess, struck: Attack) -> None:
    deadline = time.monotonic() + _MEETING_SECONDS
    while not struck.is_met.wait(0.01) and sender.is_alive and time.monotonic() < deadline:
        pass
    time.sleep(trial.random.uniform(0, 0.02))
    moment = sender.kill()
    if moment is not None:
        trial.kills[moment] += 1
    trial.cut()


def _ended_well(trial: Trial, sender: SenderProcess) -> bool:
    """False for an error that a task is tried again for; any other is a problem."""
    ending = sender.ending()
    is_again = ending.error in {RetriableError.__name__, BrokersAwayError.__name__}
    trial.expect(ending.error is None or is_again, f"a sender ended with {ending.error}: {ending.message}")
    return not is_again


def _finish(trial: Trial, shard: MemoryShard, tasks: int = _MOST_TASKS) -> None:
    for _ in range(tasks):
        with trial.sender(shard) as sender:
            if _ended_well(trial, sender):
                return
    trial.expect(False, f"{tasks} senders, one after the other, ended with an error that a task is tried again for")


def table(attacked: Sequence[Attacked]) -> Table:
    """Returns a row for each request and client: attacks, and how many of them broke something."""
    columns = ("client", "request", "attacks", "broken", "lost", "doubled", "reordered", "torn", "ended with an error")
    made = Table(*columns, title="attacks of a hostile network, and records or transactions that were hit")
    for client in dict.fromkeys(each.client for each in attacked):
        of_client = [each for each in attacked if each.client == client and each.is_met]
        for request in (*REQUESTS, "all"):
            rows = [each for each in of_client if request in {"all", each.place.request}]
            made.add_row(client, request, *map(str, _sums(rows)), end_section=request == "all")
    return made


def _sums(rows: Sequence[Attacked]) -> tuple[int, ...]:
    verdicts = [each.outcome.verdict for each in rows]
    return (
        len(rows),
        sum(each.is_broken for each in rows),
        sum(verdict.lost for verdict in verdicts),
        sum(verdict.doubled for verdict in verdicts),
        sum(verdict.reordered for verdict in verdicts),
        sum(verdict.torn for verdict in verdicts),
        sum(each.ended is not None for each in rows),
    )


def main(
    attacks: Annotated[int, typer.Option(min=1, help="How many attacks; 110 meet every place once.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same attacks.")] = 1,
    only: Annotated[int | None, typer.Option(help="Repeats one attack of the seed, by its number.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Attacks the plain client too, which is not killed.")] = False,
    kind: Annotated[Kind, typer.Option(help="What befalls requests; stalls take 20 s each.")] = Kind.NETWORK,
    json_file: Annotated[Path | None, typer.Option("--json", help="Gets every attack.")] = None,
) -> None:
    """Attacks senders through a hostile network and counts what was lost, doubled, reordered or torn.

    Exit codes: 0 nothing of Contexture's sender; 1 something, a sender ended as it should not, or a request never came.
    """
    listed = list(enumerate(planned(attacks, seed, _TURNS[kind])))
    if only is not None:
        listed = [each for each in listed if each[0] == only]
    progress, started = Console(stderr=True, highlight=False, soft_wrap=True), time.monotonic()
    done: list[Attacked] = []
    with behind_proxy(**BROKER_CONFIG) as (proxy, bootstrap, _):
        for number, place in listed:
            for each in _attacks(proxy, bootstrap, place, number, seed, plain=plain):
                done.append(each)
                progress.print(f"{time.monotonic() - started:5.0f} s {number:4} of {attacks}  {_line(each)}")
            if proxy.failure is not None:
                raise proxy.failure
    raise typer.Exit(_hand_over(done, seed, time.monotonic() - started, json_file))


def _attacks(
    proxy: KafkaProxy, bootstrap: str, place: Place, number: int, seed: int, *, plain: bool
) -> Sequence[Attacked]:
    cell = Cell(number, f"hostile network: {place}", Moment.MID_PRODUCE, seed)
    with failing_loudly(cell):
        ours = attack(proxy, bootstrap, place, number, seed)
        # Names of topics and transactional ids hold the run's number: the plain client gets others.
        theirs = [attack_plain(proxy, bootstrap, place, -1 - number, seed)] if plain and not place.is_killed else []
        return [ours, *theirs]


def _line(each: Attacked) -> str:
    late = f", the late request was answered {each.late_answer}" if each.late_answer else ""
    ended = f", ended with {each.ended}" if each.ended else ""
    if not each.is_met:
        return f"{each.client}: {each.place}: not met"
    word = "clean" if each.outcome.is_clean else str(each.outcome.verdict)
    return f"{each.client}: {each.place}: {word}{late}{ended}, {each.outcome.seconds:.1f} s"


def _hand_over(attacked: Sequence[Attacked], seed: int, seconds: float, json_file: Path | None) -> int:
    output = Console(highlight=False)
    if not output.is_terminal:
        output = Console(highlight=False, width=_WIDTH)
    output.print(table(attacked))
    ours = [each for each in attacked if each.client == CONTEXTURE]
    hit = [each for each in ours if each.is_met]
    answers = ", ".join(f"{name} {count}" for name, count in met([each.late_answer for each in hit]).items())
    output.print(f"{len(hit)} attacks with seed {seed} in {seconds:.0f} s, {len(ours) - len(hit)} requests never came")
    output.print(f"late requests were answered: {answers or 'none came'}")
    # An attack that met nothing shows nothing: as a failure, it can't make a run look well.
    unmet = [
        f"attack {each.outcome.cell.number} ({each.place}): its request never came" for each in ours if not each.is_met
    ]
    found = [*unmet, *complaints(each.outcome for each in ours)]
    for line in found:
        output.print(line, style="red", markup=False, soft_wrap=True)
    if json_file:
        json_file.write_text(json.dumps(_document(attacked, seed, seconds), indent=1) + "\n")
    return 1 if found else 0


def _document(attacked: Sequence[Attacked], seed: int, seconds: float) -> dict[str, object]:
    listed = [
        {
            "number": each.outcome.cell.number,
            "client": each.client,
            **asdict(each.place),
            "is_met": each.is_met,
            "late_answer": each.late_answer,
            "ended": each.ended,
            **asdict(each.outcome.verdict),
            "problems": list(each.outcome.problems),
            "seconds": round(each.outcome.seconds, 2),
        }
        for each in attacked
    ]
    return {"seed": seed, "seconds": round(seconds, 1), "attacks": listed}


if __name__ == "__main__":
    # However it ends, the broker and the senders go with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
