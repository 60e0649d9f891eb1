"""Names of modules in texts lead somewhere: in strings, configuration, documentation and templates.

Moving a module breaks these without an import that fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
ROOTS = {
    "contexture": "include",
    "contexture_airflow": "plugins",
    "contexture_sandbox": "tools/sandbox",
    "spark_jobs": ".",
    "tools": ".",
}
TEXTS = (".md", ".yaml", ".yml", ".toml", ".html", ".jinja", ".txt", ".cfg", ".ini", ".sh", ".json")
PLACES = ("include", "plugins", "spark_jobs", "dags", "tools", "tests", "docs", "examples")
LEFT_OUT = ("docs/decisions/", "CHANGELOG.md", "tests/samples/", "tests/unit/test_dotted_names.py")
# Topics, event types, metrics, options, codecs and loggers look like modules; files and members of test objects do too.
NO_MODULES = re.compile(
    r"contexture\.ledger(\.\w+)*|contexture\.(ngsi(\.(entity|attribute))?|sdmx\.structure)(\.(upsert|delete))?"
    r"|contexture\.operations\.[a-z]+\.[a-z]+ed|contexture\.(profile|escaped|airflow|kafka\.client|encoders|partitioners)"
    r"|contexture\.(bytes_sent|dead_letters|deletes|pending_outboxes|quarantined|read|records_sent|replica_differences)"
    r"|contexture\.(run_lag_seconds|runs_concluded|send_duration|send_failures|transactions_sent|upserts)"
    r"|contexture\.verification_duration|contexture\.sdmx\.structure|tools\.faults\.reading\.client"
)
IMPORT = re.compile(r"^\s*from ((?:" + "|".join(ROOTS) + r")[\w.]*) import (\([^)]*\)|[^\n(]+)$", re.MULTILINE)
NAME = re.compile(r"(?<![\w.\-/@])(" + "|".join(ROOTS) + r")((?:\.[A-Za-z_]\w*)+)(?![\w\-])")


def texts() -> Iterator[tuple[str, str]]:
    """Relative name and text of each file; of Python files the strings alone."""
    files = [path for place in PLACES for path in (PROJECT / place).rglob("*") if path.is_file()]
    files += [path for path in PROJECT.iterdir() if path.is_file()]
    for path in files:
        name = path.relative_to(PROJECT).as_posix()
        if name.startswith(LEFT_OUT) or "__pycache__" in name or "/.venv/" in name:
            continue
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield name, node.value
        elif path.suffix in TEXTS or path.name in ("Makefile", "Dockerfile", ".airflowignore"):
            yield name, path.read_text()


@cache
def module_file(name: str) -> Path | None:
    """The file of a module or package."""
    base = PROJECT / ROOTS[name.partition(".")[0]] / name.replace(".", "/")
    files = (base.with_suffix(".py"), base / "__init__.py")
    return next((file for file in files if file.is_file()), base if base.is_dir() else None)


@cache
def members(name: str) -> frozenset[str]:
    """What a module defines or imports at its top level, names in its tables of lazy members included."""
    file = module_file(name)
    if file is None or file.is_dir():
        return frozenset()
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Dict):
            found |= {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return frozenset(found)


def leads_somewhere(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if module_file(module) is not None:
            return length == len(parts) or parts[length] == "__file__" or parts[length] in members(module)
    return False


@pytest.mark.slow
def test_every_name_of_a_module_in_a_text_leads_to_it() -> None:
    found = {match.group(0): name for name, text in texts() for match in NAME.finditer(text)}
    names = {name: where for name, where in found.items() if not NO_MODULES.fullmatch(name)}
    assert len(names) > 100
    assert {name: where for name, where in names.items() if not leads_somewhere(name)} == {}


@pytest.mark.slow
def test_every_name_that_code_in_a_text_imports_is_there() -> None:
    """Programs in strings and in the documentation: no type checker reads them."""
    found = {
        f"{match[1]}.{imported}": name
        for name, text in texts()
        for match in IMPORT.finditer(text)
        for imported in re.findall(r"[A-Za-z_]\w*", re.sub(r" as \w+", "", match[2]))
    }
    assert len(found) > 20
    assert {name: where for name, where in found.items() if not leads_somewhere(name)} == {}


def test_a_name_that_leads_nowhere_is_found() -> None:
    assert leads_somewhere("contexture.errors.ContextureError")
    assert leads_somewhere("contexture.sending.Publisher.publish")
    assert not leads_somewhere("contexture.errors.NoSuchError")
    assert not leads_somewhere("contexture.no_such_package.module")
    assert not leads_somewhere("spark_jobs.no_such_module")
