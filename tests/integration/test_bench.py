"""The bench as a person calls it; its figures are not checked here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.bench", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def test_a_quick_send_prints_its_ratio_to_kafkas_own_program(tmp_path: Path) -> None:
    answer = bench("--quick", "--only", "send", "--json", str(tmp_path / "figures.json"))

    assert answer.returncode == 0, answer.stderr
    row = next(line for line in answer.stdout.splitlines() if line.startswith("| send |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[3].startswith("Kafka's ProducerPerformance")
    assert cells[7] == "≥ 0.7"
    figures = json.loads((tmp_path / "figures.json").read_text())["measures"][0]
    assert cells[5] == f"{figures['ours'][0] / figures['peer'][0]:.2f}"
    assert re.search(r"send: pair 1 of 1: ours [\d,]+, peer [\d,]+", answer.stderr)


@pytest.mark.long
def test_a_quick_look_at_changes_compares_sizes_of_state_and_shows_what_is_read() -> None:
    answer = bench("--quick", "--only", "changes")

    assert answer.returncode == 0, answer.stderr
    rows = [line for line in answer.stdout.splitlines() if line.startswith("| changes |")]
    assert len(rows) == 3
    assert "a run of 100 changes over 10,000 held |" in rows[0]
    assert re.search(r"\d+ of \d+ row groups hold what changes", answer.stderr)


@pytest.mark.long
def test_a_quick_source_goes_from_the_broker_to_kafka_and_is_read_back() -> None:
    answer = bench("--quick", "--only", "source")

    assert answer.returncode == 0, answer.stderr
    steps = [line.split("|")[2].split()[0] for line in answer.stdout.splitlines() if line.startswith("| source |")]
    assert steps == ["pull", "prepare", "judge", "publish", "conclude", "peak", "peak"]


@pytest.mark.long
def test_a_quick_registry_goes_to_kafka_in_one_transaction_and_is_read_back() -> None:
    answer = bench("--quick", "--only", "registry")

    assert answer.returncode == 0, answer.stderr
    steps = [line.split("|")[2].split()[0] for line in answer.stdout.splitlines() if line.startswith("| registry |")]
    assert steps == ["pull", "prepare", "judge", "publish", "conclude", "peak", "peak"]


def test_a_quick_run_refuses_to_write_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("as it was")

    answer = bench("--quick", "--write", str(page))

    assert answer.returncode == 2
    assert "a quick run gives no figures" in answer.stderr
    assert page.read_text() == "as it was"


def test_an_unknown_bench_is_named_together_with_those_there_are() -> None:
    answer = bench("--only", "speed")

    assert answer.returncode == 2
    assert "there is no bench speed" in answer.stderr
    assert "prepare" in answer.stderr


def test_a_quick_split_compares_rates_with_pysdmx_and_holds_memory_to_the_largest_artefact() -> None:
    answer = bench("--quick", "--only", "split")

    assert answer.returncode == 0, answer.stderr
    rows = [line.split("|") for line in answer.stdout.splitlines() if line.startswith("| split |")]
    assert [row[2].split(",")[0].strip() for row in rows[:5]] == [
        *("SDMX-ML 2.1", "SDMX-ML 2.1", "SDMX-ML 3.0", "SDMX-JSON 2.0", "SDMX-JSON 2.0")
    ]
    assert {row[8].strip() for row in rows[:5]} == {"≥ 5"}
    assert rows[5][9].strip() == "met"


def test_a_quick_encode_measures_events_against_the_sdk_or_says_that_it_is_not_installed() -> None:
    answer = bench("--quick", "--only", "encode")

    assert answer.returncode == 0, answer.stderr
    rows = [line.split("|") for line in answer.stdout.splitlines() if "| CloudEvents" in line]
    targets = [row[8].strip() for row in rows]
    if find_spec("cloudevents") is None:
        assert "`cloudevents`, is not installed" in answer.stderr
        assert targets == []
    else:
        assert targets == ["≥ 5", "-", "≥ 4", "-"]
