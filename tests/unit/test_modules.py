"""Modules stay so short that one can be read in one go."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
MOST_LINES = 600


def test_no_module_is_longer_than_a_person_reads_in_one_go() -> None:
    modules = [path for root in ("include", "plugins", "spark_jobs", "dags") for path in (PROJECT / root).rglob("*.py")]
    assert len(modules) > 300
    lines = {str(path.relative_to(PROJECT)): len(path.read_text().splitlines()) for path in modules}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_only_storage_knows_which_filesystem_a_home_is_on() -> None:
    folders = ("include/contexture", "plugins", "spark_jobs", "dags")
    named = [
        path.relative_to(PROJECT).as_posix()
        for folder in folders
        for path in (PROJECT / folder).rglob("*.py")
        if "filesystem=" in path.read_text(encoding="utf-8")
    ]
    assert [each for each in named if not each.startswith("include/contexture/storage/")] == []
