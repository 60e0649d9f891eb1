"""docs/explanation/threat-model.md names the test that holds each of its lines, and each of these tests is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text()
TEST = re.compile(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`")
WITHOUT = "not tested: "
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.endswith("| held by |")
]


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return frozenset(name for name in names if name.startswith("test_"))


def test_there_are_lines() -> None:
    assert len(ROWS) > 30
    assert {len(row) for row in ROWS} == {3}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_each_threat_names_tests_that_are_there_or_says_why_there_is_none(row: list[str]) -> None:
    held_by = row[2]
    if held_by.startswith(WITHOUT):
        assert len(held_by) > len(WITHOUT) + 10
        return
    named = TEST.findall(held_by)
    assert named
    # The cell contains only tests, so that no test is passed over because of how it is written.
    assert TEST.sub("", held_by).strip(", ") == ""
    for file, name in named:
        assert names_in(file), f"{file} holds no test"
        assert not name or name in names_in(file), f"{file} has no {name}"
