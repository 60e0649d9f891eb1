"""One class name has one meaning in the whole product."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[2]


def public_classes() -> dict[str, list[str]]:
    """The modules of each public class, by its name."""
    found = defaultdict[str, list[str]](list)
    for folder in ("include", "plugins", "spark_jobs", "dags"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            names = [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
            for name in names:
                if not name.startswith("_"):
                    found[name].append(str(path.relative_to(PROJECT)))
    return found


def test_no_class_name_has_two_meanings() -> None:
    classes = public_classes()
    assert len(classes) > 400
    assert {name: modules for name, modules in classes.items() if len(modules) > 1} == {}
