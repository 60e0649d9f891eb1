"""Which runs there are, and running them: most beside each other on one broker, those that end the broker apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final

from contexture_sandbox.kafka import EmbeddedKafka
from tools.faults.failing_parts import BROKEN_CLUSTER, broken_cluster
from tools.faults.moments import MOMENTS
from tools.faults.scenarios import SCENARIOS
from tools.faults.together import BROKER_RESTART, broker_restart
from tools.faults.trial import Cell, Outcome, Trial, failing_loudly

NAMES: Final = (*SCENARIOS, BROKER_RESTART, BROKEN_CLUSTER)

BROKER_CONFIG: Final = {
    # Kafka looks every 10 s by default: too long to wait in each run.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
}
_SENDERS_OF_A_RESTART: Final = 8
_BROKERS: Final = 3
# Each group takes more than a minute, however many there are in it.
_SENDERS_OF_THREE: Final = 16

OnOutcome = Callable[[Outcome], None]


def cells(runs: int, seed: int, scenarios: Sequence[str] = NAMES) -> list[Cell]:
    """So many runs, spread over scenarios and moments; each scenario comes to every moment in turn."""
    return [
        Cell(number, scenarios[index], MOMENTS[(index + turn) % len(MOMENTS)], seed)
        for number in range(runs)
        for turn, index in [divmod(number, len(scenarios))]
    ]


def run_all(kafka: EmbeddedKafka, planned: Iterable[Cell], on_outcome: OnOutcome, *, beside: int) -> list[Outcome]:
    """Runs them; those that need a cluster of three come last, on one of their own.

    Args:
        kafka: a cluster of one broker with BROKER_CONFIG.
        planned: the runs.
        on_outcome: receives each outcome as it comes.
        beside: how many go on at once.
    """
    planned = list(planned)
    outcomes = _with_restarts(kafka, [cell for cell in planned if cell.scenario == BROKER_RESTART], on_outcome)
    with ThreadPoolExecutor(beside) as pool:
        alone = [cell for cell in planned if cell.scenario not in {BROKER_RESTART, BROKEN_CLUSTER}]
        for future in as_completed([pool.submit(_run, kafka.bootstrap_servers, cell) for cell in alone]):
            outcomes.append(future.result())
            on_outcome(outcomes[-1])
    outcomes += _with_three([cell for cell in planned if cell.scenario == BROKEN_CLUSTER], on_outcome)
    return sorted(outcomes, key=lambda outcome: outcome.cell.number)


def _with_restarts(kafka: EmbeddedKafka, planned: Sequence[Cell], on_outcome: OnOutcome) -> list[Outcome]:
    """These come first: a broker that was killed looks through all it holds, so it should hold little."""
    outcomes: list[Outcome] = []
    for turn, first in enumerate(range(0, len(planned), _SENDERS_OF_A_RESTART)):
        group = planned[first : first + _SENDERS_OF_A_RESTART]
        outcomes += broker_restart(kafka, group, hard=turn % 2 == 0)
        for outcome in outcomes[first:]:
            on_outcome(outcome)
    return outcomes


def _with_three(planned: Sequence[Cell], on_outcome: OnOutcome) -> list[Outcome]:
    if not planned:
        return []
    outcomes: list[Outcome] = []
    with EmbeddedKafka(_BROKERS, heap="384m", broker_config=BROKER_CONFIG) as three:
        for first in range(0, len(planned), _SENDERS_OF_THREE):
            outcomes += broken_cluster(three, planned[first : first + _SENDERS_OF_THREE])
            for outcome in outcomes[first:]:
                on_outcome(outcome)
    return outcomes


def _run(bootstrap: str, cell: Cell) -> Outcome:
    with failing_loudly(cell):
        return SCENARIOS[cell.scenario](Trial(cell, bootstrap))
