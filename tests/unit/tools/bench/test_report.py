"""What the documentation shows of a bench: ratios that have a target, and the rest only as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tools.bench.machine import Machine
from tools.bench.measures import Measure, Target
from tools.bench.report import BEGIN, END, PAGE_COLUMNS, page_table, write_between_markers

PAGE = Path(__file__).parents[4] / "docs" / "benchmarks.md"
MACHINE = Machine("a processor", 2, 24, "Linux", "3.11", "17", "4.3.1", {"orjson": "3.13.0"}, 0.0)
MEASURES = [
    Measure("send", "one sender", "records/s", (90.0, 110.0), (100.0, 100.0), "its peer", Target(0.7, at_least=True)),
    Measure("encode", "names", "names/s", (1_000.0,), target=Target(2_000, at_least=True)),
    Measure("send", "for information", "records/s", (1.0,)),
]


def test_the_page_shows_measures_with_a_target_and_our_own_figure_without_a_peer() -> None:
    lines = page_table(MEASURES, MACHINE, datetime(2026, 11, 25, tzinfo=UTC)).splitlines()
    assert lines[0].startswith("Taken on 25 November 2026. processor: a processor, 2 cores")
    assert lines[2:] == [
        "| bench | measured | against | ratio | spread | target |  |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| send | one sender | its peer | 1.00 | 0.90 to 1.10 | ≥ 0.7 | met |",
        "| encode | names | - | 1,000 names/s | 1,000 to 1,000 | ≥ 2,000 | missed |",
    ]


def test_the_page_has_the_table_that_the_bench_writes(tmp_path: Path) -> None:
    copy = tmp_path / "benchmarks.md"
    copy.write_text(PAGE.read_text())
    assert "| " + " | ".join(PAGE_COLUMNS) + " |" in copy.read_text()
    write_between_markers(copy, "figures")
    assert f"{BEGIN}\n\nfigures\n\n{END}" in copy.read_text()
    assert PAGE.read_text().partition(END)[2] == copy.read_text().partition(END)[2]
