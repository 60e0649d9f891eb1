"""Lines of `make` and `uv` on the pages come down to what other tests run; what is short is run here."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from builders.pages import PROJECT, block
from builders.terminal import Terminal, behind_make
from tools.faults.matrix import NAMES

SECURITY, GUARANTEES = "how-to/check-security.md", "reference/guarantees.md"


def test_continuous_integration_ends_with_the_readme_s_command():
    assert (PROJECT / ".ci" / "run").read_text().endswith(block("README.md", "make test"))


def test_what_a_contributor_begins_with_is_a_part_of_it():
    first, second = (line.split("  #")[0].strip() for line in block("CONTRIBUTING.md", "make install").splitlines())
    makefile = (PROJECT / "Makefile").read_text()
    assert first == "make install"
    assert re.search(r"^test: install\b", makefile, re.MULTILINE)
    assert "$(MAKE) --no-print-directory lint" in makefile
    assert behind_make(second)[:4] == ["-m", "pytest", "tests/unit", "-q"]
    assert re.search(r"^FIRST_LANE := tests/unit ", makefile, re.MULTILINE)


def test_parsers_are_fed_for_as_long_as_is_said():
    first, second, third = block(SECURITY, "make fuzz  ").strip().splitlines()
    assert behind_make(first) == ["-m", "tools.fuzz", "--seconds", "120", "--seed", "1"]
    assert behind_make(second) == ["-m", "tools.fuzz", "--seconds", "3600", "--seed", "7", "--json", "figures.json"]
    done = Terminal(PROJECT).run(third.replace(".venv/bin/python", sys.executable).replace("300", "1"))
    assert " cases with seed 1 in " in done.stdout


def test_a_cluster_is_started_and_broken_by_a_test_of_its_own():
    words = behind_make(block("how-to/move-to-a-cluster.md", "make cluster-test"))
    assert words == ["-m", "pytest", "--long", "tests/e2e/test_cluster.py", "-s"]


def test_what_compose_starts_is_used_by_a_test_of_its_own():
    words = behind_make(block("how-to/move-to-a-cluster.md", "make compose-test"))
    assert words == ["-m", "pytest", "--long", "tests/e2e/test_compose_services.py", "-s", "-rs"]


def test_uv_knows_the_extra_for_lineage():
    script = block("how-to/show-lineage.md", "--extra openlineage").strip()
    uv = str(Path(sys.executable).with_name("uv"))
    Terminal(PROJECT).run(f"{script.replace('.venv/bin/uv', uv)} --dry-run --offline")
    with pytest.raises(AssertionError, match="not-there"):
        Terminal(PROJECT).run(f"{uv} sync --frozen --extra not-there --dry-run --offline")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (0, ["--runs", "216", "--seed", "1"]),
        (1, ["--runs", "24", "--seed", "7", "--json", "figures.json"]),
    ],
)
def test_senders_are_killed_as_often_as_is_said(line, words):
    script = block(GUARANTEES, "make faults RUNS=24").splitlines()[line]
    assert behind_make(script) == ["-m", "tools.faults", *words]


def test_one_scenario_is_chosen_by_its_name():
    third = shlex.split(block(GUARANTEES, "make faults RUNS=24").splitlines()[2])
    assert third[1:3] == ["-m", "tools.faults"]
    assert third[third.index("--only") + 1] in NAMES
