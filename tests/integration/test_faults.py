"""A short slice of the fault matrix, as a person calls it; the whole of it is `make faults`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from secrets import randbits

import pytest

from tools.faults.failing_parts import BROKEN_CLUSTER
from tools.faults.matrix import NAMES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parents[2]


def test_a_slice_of_the_fault_matrix_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    scenarios = [name for name in NAMES if name != BROKEN_CLUSTER]
    only = [word for name in scenarios for word in ("--only", name)]
    command = [sys.executable, "-m", "tools.faults", "--runs", "13", "--seed", "4", "--json", str(figures), *only]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, f"{answer.stdout}\n{answer.stderr}"
    written = json.loads(figures.read_text())
    assert {each["scenario"] for each in written["outcomes"]} == set(scenarios)
    faults = ("lost", "doubled", "reordered", "strange", "torn", "scattered", "vanished")
    assert {fault: sum(each[fault] for each in written["outcomes"]) for fault in faults} == dict.fromkeys(faults, 0)
    assert all(each["cuts"] >= 3 for each in written["outcomes"])
    assert written["kills_inside"] >= 6
    assert written["kills_inside"] <= sum(written["kills"].values())


def test_a_scenario_that_is_not_there_is_refused_with_those_that_are() -> None:
    command = [sys.executable, "-m", "tools.faults", "--only", "earthquake"]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 2
    assert "killed" in answer.stderr


def test_requests_that_the_network_delivers_late_or_twice_lose_and_double_nothing() -> None:
    """Ten attacks of one seed; one of them is a late commit, which the broker refuses because of the sender's epoch."""
    command = [sys.executable, "-m", "tools.faults.hostile", "--attacks", "10", "--seed", "1"]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, f"{answer.stdout}\n{answer.stderr}"
    assert answer.stderr.count(": clean") == 10
    assert "INVALID_PRODUCER_EPOCH" in answer.stdout


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_whole_matrix_with_another_seed_each_time_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    figures, seed = tmp_path / "figures.json", randbits(31)
    command = [sys.executable, "-m", "tools.faults", "--runs", "324", "--seed", str(seed), "--json", str(figures)]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, f"{answer.stdout}\n{answer.stderr}"
    assert json.loads(figures.read_text())["kills_inside"] >= 150


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("kind", "attacks"), [("network", "220"), ("stall", "6")])
def test_attacks_with_another_seed_each_time_lose_and_double_nothing(kind: str, attacks: str) -> None:
    seed = randbits(31)
    command = [sys.executable, "-m", "tools.faults.hostile", "--attacks", attacks, "--seed", str(seed), "--kind", kind]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, f"{answer.stdout}\n{answer.stderr}"


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_packets_that_are_lost_while_a_sender_commits_lose_and_double_nothing() -> None:
    inside = ["unshare", "--net"]
    probe = "ip link set lo up && tc qdisc add dev lo root blackhole"
    try:
        answer = subprocess.run([*inside, "sh", "-c", probe], capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        pytest.skip(f"no network namespace can be made here: {missing}")
    if answer.returncode != 0:
        pytest.skip(f"no network namespace can be made here: {answer.stderr.strip()}")
    command = [
        *inside,
        sys.executable,
        "-m",
        "tools.faults.lost_packets",
        "--attacks",
        "6",
        "--seed",
        str(randbits(31)),
    ]

    answer = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, f"{answer.stdout}\n{answer.stderr}"
