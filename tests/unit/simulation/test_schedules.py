"""The sender's own code in schedules with a simulated Kafka: the laws hold, and what breaks them is found."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from random import randrange

import pytest

from contexture.kafka.clients import transactional_producer
from contexture.sending.resume import ExpectedRow
from tools.simulation.plans import EMPTIED, LEADERS, MARKERS, NETWORK, QUIET, REPLACED, RESHARDED, RESTARTED
from tools.simulation.runs import SimulatedTarget
from tools.simulation.schedules import replay, try_schedules
from tools.simulation.verdict import LAWS


def tried(tmp_path, *options, timeout_seconds=280):
    """The figures of the command, and what came out wrong."""
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tools.simulation", "--json", str(figures), "--shown", "0", *options]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, timeout=timeout_seconds)
    found = json.loads(figures.read_text())
    return found["figures"], [each for each in found["wrong"] if set(each) & set(LAWS)]


@pytest.mark.parametrize("weather", [QUIET, NETWORK, LEADERS])
@pytest.mark.parametrize("scenario", [RESTARTED, REPLACED, RESHARDED, EMPTIED])
def test_no_law_is_broken_whatever_happens_to_senders_requests_and_leaders(tmp_path, scenario, weather):
    """1,020 schedules in all; `make test-long` runs ten times as many, and a million."""
    options = ["--scenario", scenario, "--weather", weather, "--schedules", "85", "--workers", "1"]
    figures, wrong = tried(tmp_path, *options)
    assert wrong == []
    assert figures["killed"] + figures["stopped"] > 75


@pytest.mark.parametrize("scenario", [RESTARTED, REPLACED])
def test_no_law_is_broken_where_markers_are_left_out(tmp_path, scenario):
    """Without what puts committed records back, one in five is."""
    options = ["--scenario", scenario, "--weather", MARKERS, "--schedules", "70", "--workers", "1"]
    figures, wrong = tried(tmp_path, *options)
    assert wrong == []
    assert figures["killed"] + figures["stopped"] > 70


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("weather", [QUIET, NETWORK, LEADERS])
@pytest.mark.parametrize("scenario", [RESTARTED, REPLACED, RESHARDED, EMPTIED])
def test_no_law_is_broken_in_any_of_ten_thousand_schedules(tmp_path, scenario, weather):
    """10,200 schedules in all, of the same seeds each time."""
    options = ["--scenario", scenario, "--weather", weather, "--schedules", "850", "--workers", "1"]
    figures, wrong = tried(tmp_path, *options, timeout_seconds=3000)
    assert wrong == []
    assert figures["killed"] + figures["stopped"] > 750


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scenario", [RESTARTED, REPLACED])
def test_no_law_is_broken_where_markers_are_left_out_of_seven_hundred_schedules(tmp_path, scenario):
    options = ["--scenario", scenario, "--weather", MARKERS, "--schedules", "700", "--workers", "1"]
    figures, wrong = tried(tmp_path, *options, timeout_seconds=3000)
    assert wrong == []
    assert figures["killed"] + figures["stopped"] > 750


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("weather", [QUIET, NETWORK, LEADERS])
@pytest.mark.parametrize("scenario", [RESTARTED, REPLACED, RESHARDED, EMPTIED])
def test_no_law_is_broken_in_any_of_a_million_schedules(tmp_path, scenario, weather):
    """A twelfth of them for each pair, of seeds that were never tried."""
    seed = randrange(10**6, 10**9)
    options = ["--scenario", scenario, "--weather", weather, "--schedules", "84000", "--seed", str(seed)]
    figures, wrong = tried(tmp_path, *options, timeout_seconds=7000)
    assert (seed, wrong) == (seed, [])
    assert figures["schedules"] == 84000


def test_a_seed_gives_the_same_schedule_again():
    command = [sys.executable, "-m", "tools.simulation", "--replay", "7"]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=False).stdout for _ in range(2))
    assert first == second
    assert "tx.simulated.0" in first


class ForgettingTarget(SimulatedTarget):
    """Its senders never look into the ledger, nor expect anything there."""

    def send(self, sending):
        return super().send(replace(sending, row=ExpectedRow.NONE))

    def _publisher(self, sending, **options):
        ledger = self._ledger()
        ledger.read_committed = ledger.read_uncommitted = lambda shard: None
        ledger.read_unseen = lambda shard: []
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
    """Its senders do not look for what Kafka neither committed nor aborted, nor expect it."""

    def send(self, sending):
        return super().send(replace(sending, row=ExpectedRow.NONE))

    def _publisher(self, sending, **options):
        class Nothing:
            def spans(self, topics):
                return {}

            def matching(self, spans, sought):
                return set()

            def moved(self, topics, since):
                return {}

        ledger = self._ledger()
        ledger.read_uncommitted, ledger.read_unseen = lambda shard: None, lambda shard: []
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
    for what in (
        "EndTxn",
        "held for",
        "dropped, its connection is cut",
        "its answer gets lost",
        "which no one receives",
    ):
        assert what in text
