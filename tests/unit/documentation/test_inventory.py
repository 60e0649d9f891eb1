"""Every block of commands on a page is run by a test, or the page says that none does, and why."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from builders.pages import PROJECT, Block, block, blocks, pages

IMPORTED = re.compile(r"^from builders\.pages import .*\bblock\b", re.MULTILINE)


class Taken(NamedTuple):
    """That a test takes a block from a page."""

    test: str
    page: str
    containing: str


def commands() -> list[Block]:
    """The blocks of all pages that are for a shell."""
    return [each for page in pages() for each in blocks(page) if each.is_for_a_shell]


@cache
def taken() -> tuple[Taken, ...]:
    """What all tests take from pages, by their text."""
    files = [path for path in sorted((PROJECT / "tests").rglob("test_*.py")) if path != Path(__file__)]
    return tuple(each for path in files if IMPORTED.search(path.read_text("utf-8")) for each in taken_by(path))


def taken_by(path: Path) -> Iterator[Taken]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = constants_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "block":
            page, containing = (literal(argument, constants) for argument in node.args)
            yield Taken(str(path.relative_to(PROJECT)), page, containing)


def constants_of(tree: ast.Module) -> dict[str, str]:
    """The texts that a module gives names to."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                found |= dict(zip(map(ast.unparse, names), values, strict=False))
    return {name: value.value for name, value in found.items() if is_text(value)}


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def literal(node: ast.expr, constants: dict[str, str]) -> str:
    """Returns the text of an argument; page and text must be literals, because they identify the block."""
    return constants[node.id] if isinstance(node, ast.Name) else str(ast.literal_eval(node))


def runners(found: Block) -> set[str]:
    return {each.test for each in taken() if each.page == found.page and each.containing in found.text}


def name(found: Block) -> str:
    return f"{found.page}:{found.line}"


def test_there_are_commands_and_tests_that_take_them():
    assert len(commands()) > 50
    assert "tests/e2e/test_new_users_hour.py" in {each.test for each in taken()}


@pytest.mark.parametrize("found", commands(), ids=name)
def test_commands_are_run_by_a_test_or_the_page_says_why_not(found: Block):
    assert runners(found) or found.not_run, (
        f"{name(found)}: no test takes these commands from the page by `block`. Next: write one, or say below the "
        f"block `*Not run by a test: the reason.*`, or mark it as `text` if it is not to be typed\n{found.text}"
    )


@pytest.mark.parametrize("found", commands(), ids=name)
def test_what_is_run_is_not_said_to_be_untried(found: Block):
    assert not (found.not_run and runners(found)), f"{name(found)}: {runners(found)} runs it"


@pytest.mark.parametrize("each", taken(), ids=lambda each: f"{each.test}-{each.page}-{each.containing[:30]}")
def test_what_a_test_takes_is_on_the_page(each: Taken):
    assert block(each.page, each.containing)


def test_the_reason_is_read_from_below_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr("builders.pages.PROJECT", tmp_path)
    noted = "1. do\n\n   ```bash\n   kubectl get\n   ```\n\n   *Not run by a test: it needs a\n   cluster.*\n\n"
    (tmp_path / "page.md").write_text(f"{noted}```\nls\n```\n\nText.\n")
    first, second = blocks("page.md")
    assert (first.text, first.not_run, first.line) == ("kubectl get\n", "it needs a cluster", 3)
    assert (second.text, second.not_run) == ("ls\n", None)
