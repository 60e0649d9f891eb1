"""Examples in docstrings are run."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "include"
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "contexture").rglob("*.py")
    if ">>> " in path.read_text()
)


def test_there_are_examples() -> None:
    assert len(MODULES) >= 5


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_give_what_they_show(name: str) -> None:
    result = doctest.testmod(import_module(name), report=True)
    assert result.attempted > 0
    assert result.failed == 0
