"""The sender's own code in schedules with a simulated Kafka: the laws hold, and what breaks them is found."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from contexture.kafka.clients import transactional_producer
from tools.simulation.plans import MARKERS, NETWORK, QUIET, REPLACED, RESHARDED, RESTARTED
from tools.simulation.runs import SimulatedTarget
from tools.simulation.schedules import replay, try_schedules
from tools.simulation.verdict import LAWS


def tried(tmp_path, *options):
    """The figures of the command, and what came out wrong."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tools.simulation", "--json", str(figures), "--shown", "0", *options]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, timeout=280)
    found = json.loads(figures.read_text())
    return found["figures"], [each for each in found["wrong"] if set(each) & set(LAWS)]


@pytest.mark.parametrize("scenario", [RESTARTED, REPLACED])
def test_no_law_is_broken_where_senders_die_stop_and_are_replaced(tmp_path, scenario):
    figures, wrong = tried(tmp_path, "--scenario", scenario, "--weather", QUIET, "--schedules", "150", "--workers", "1")
    assert wrong == []
    assert figures["killed"] + figures["stopped"] > 100


def test_a_seed_gives_the_same_schedule_again():
    command = [sys.executable, "-m", "tools.simulation", "--replay", "7"]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=False).stdout for _ in range(2))
    assert first == second
    assert "tx.simulated.0" in first


class ForgettingTarget(SimulatedTarget):
    """Its senders never look into the ledger."""

    def _publisher(self, sending, **options):
        ledger = self._ledger()
        ledger.settled = ledger.hidden = lambda shard: None
        return super()._publisher(sending, ledger=ledger, **options)


class ImpatientProducer:
    """Commits after each second record."""

    def __init__(self, producer):
        self.producer, self.produced = producer, 0

    def produce(self, *row):
        self.produced += 1
        if self.produced % 3 == 0:
            self.producer.commit_transaction(30)
            self.producer.begin_transaction()
        self.producer.produce(*row)

    def __getattr__(self, name):
        return getattr(self.producer, name)

    def __len__(self):
        return len(self.producer)


class ImpatientTarget(SimulatedTarget):
    """Its senders tear transactions."""

    def _publisher(self, sending, **options):
        def opened(*call):
            return ImpatientProducer(transactional_producer(*call))

        return super()._publisher(sending, open_producer=opened, **options)


class BlindTarget(SimulatedTarget):
    """Its senders do not look for what Kafka neither committed nor aborted."""

    def _publisher(self, sending, **options):
        class Nothing:
            def spans(self, topics):
                return {}

            def matching(self, spans, sought):
                return set()

        ledger = self._ledger()
        ledger.hidden = lambda shard: None
        return super()._publisher(sending, ledger=ledger, hidden=Nothing(), **options)


def found_by(target, weather, scenario=RESTARTED, schedules=150):
    """The kinds of anomalies that schedules show of a sender."""
    kinds = set()
    for each in try_schedules(1, schedules, scenario, weather, target):
        kinds |= set(each.verdict.anomalies)
    return kinds


def test_a_sender_that_forgets_how_far_it_got_is_found_to_double():
    assert "doubled" in found_by(ForgettingTarget, QUIET, schedules=40)


def test_a_sender_that_commits_in_between_is_found_to_tear():
    assert "torn" in found_by(ImpatientTarget, QUIET, RESHARDED, schedules=60)


def test_a_sender_that_is_blind_to_lost_markers_is_found_to_double():
    assert "doubled" in found_by(BlindTarget, MARKERS)


def test_requests_are_held_dropped_and_left_unanswered():
    seen = []
    for seed in range(1, 12):
        _, trace = replay(seed, RESTARTED, NETWORK)
        seen.extend(trace)
    text = "\n".join(seen)
    for what in ("EndTxn", "held for", "dropped, its connection is cut", "its answer gets lost", "which nobody hears"):
        assert what in text
