"""No DAG, operator or trigger touches Airflow's database: it works in tests and fails in production."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "plugins" / "contexture_airflow" / "web"
IN_THE_API_SERVER = PAGE / "airflow_database.py"
"""The page runs in Airflow's API server, which has the database; it asks it in this module alone."""
FILES = sorted({*(PROJECT / "dags").rglob("*.py"), *(PROJECT / "plugins").rglob("*.py")} - {IN_THE_API_SERVER})
FORBIDDEN = ("sqlalchemy", "airflow.models", "airflow.utils.session", "airflow.settings", "airflow.utils.db")


def imported(text: str) -> list[str]:
    """The full names that a module imports, anywhere in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_no_module_imports_the_orm_or_a_session(path: Path) -> None:
    assert [name for name in imported(path.read_text()) if name.startswith(FORBIDDEN)] == []


def test_only_the_page_imports_what_asks_the_database() -> None:
    asking = [path for path in FILES if any("airflow_database" in name for name in imported(path.read_text()))]

    assert asking != []
    assert [path for path in asking if PAGE not in path.parents] == []


@pytest.mark.parametrize(
    "line",
    ["from airflow.models import DagRun", "import sqlalchemy.orm", "def f():\n    from airflow import settings"],
)
def test_the_check_finds_what_it_looks_for(line: str) -> None:
    assert [name for name in imported(line) if name.startswith(FORBIDDEN)] != []
