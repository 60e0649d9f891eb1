"""Modules stay so short that one can be read in one go."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
MOST_LINES = 600


def test_no_module_is_longer_than_a_person_reads_in_one_go() -> None:
    modules = [path for root in ("include", "plugins", "spark_jobs", "dags") for path in (PROJECT / root).rglob("*.py")]
    assert len(modules) > 300
    lines = {str(path.relative_to(PROJECT)): len(path.read_text().splitlines()) for path in modules}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


PRODUCT = ("include/contexture", "plugins", "spark_jobs", "dags")


def modules_with(pattern: str) -> set[str]:
    """The modules of the product outside of storage whose text has the pattern."""
    found = (path for folder in PRODUCT for path in (PROJECT / folder).rglob("*.py"))
    named = {path.relative_to(PROJECT).as_posix(): path.read_text(encoding="utf-8") for path in found}
    return {
        name
        for name, text in named.items()
        if re.search(pattern, text) and not name.startswith("include/contexture/storage/")
    }


def test_a_home_is_opened_where_its_address_is_read_and_nowhere_else() -> None:
    assert modules_with(r"\b(Home|FileTree)\(") == {
        "include/contexture/operations/environment.py",
        "plugins/contexture_airflow/connections/settings.py",
        # By the address in the order of a run, and the order by its own.
        "spark_jobs/shared/context.py",
        "spark_jobs/stage.py",
    }


def test_only_storage_knows_where_files_of_a_publication_are() -> None:
    assert modules_with(r"contexture\.storage\.paths|PublicationPaths|\bStoredFolder\(") == set()


def test_only_storage_opens_files_of_a_home() -> None:
    assert modules_with(r"filesystem=|\.filesystem\b|\b(open_filesystem|knows_folders)\b") == set()
