"""A short slice of the fault matrix, as a person calls it; the whole of it is `make faults`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.faults.matrix import NAMES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]


def test_a_slice_of_the_fault_matrix_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tools.faults", "--runs", "12", "--seed", "4", "--json", str(figures)]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, f"{answer.stdout}\n{answer.stderr}"
    told = json.loads(figures.read_text())
    assert {each["scenario"] for each in told["outcomes"]} == set(NAMES)
    faults = ("lost", "doubled", "reordered", "strange", "torn", "scattered", "vanished")
    assert {fault: sum(each[fault] for each in told["outcomes"]) for fault in faults} == dict.fromkeys(faults, 0)
    assert all(each["cuts"] >= 3 for each in told["outcomes"])
    assert told["kills_inside"] >= 6
    assert told["kills_inside"] <= sum(told["kills"].values())


def test_a_scenario_that_is_not_there_is_refused_with_those_that_are() -> None:
    command = [sys.executable, "-m", "tools.faults", "--only", "earthquake"]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 2
    assert "killed" in answer.stderr


def test_requests_that_the_network_delivers_late_or_twice_lose_and_double_nothing() -> None:
    """Eight attacks: EndTxn, InitProducerId, AddPartitionsToTxn and Produce held back, the sender alive and killed."""
    command = [sys.executable, "-m", "tools.faults.hostile", "--runs", "8", "--seed", "1"]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, f"{answer.stdout}\n{answer.stderr}"
    assert answer.stdout.count(": clean") == 8
    # A late commit reached the broker, and was refused because the sender had a new epoch.
    assert "hold EndTxn, lives: clean, the late request was answered INVALID_PRODUCER_EPOCH" in answer.stdout
