"""Rules of a whole snapshot, over narrow rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.entities.snapshot_rules import count_across_paths, count_mismatch, count_unusual_types


def table(columns: list[str], *rows: tuple[str | None, ...]) -> Any:
    return pa.table({name: pa.array([row[number] for row in rows], pa.string()) for number, name in enumerate(columns)})


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], 0),
        ([("/a", "car1", "car"), ("/a", "car1", "car")], 0),
        ([("/a", "car1", "car"), ("/b", "car2", "car"), ("/b", "car1", "bus")], 0),
        ([("/a", "car1", "car"), ("/b", "car1", "car"), ("/c", "car1", "car"), ("/b", "car2", "car")], 1),
    ],
)
def test_an_id_and_type_in_several_paths_count_once(rows: list[tuple[str, ...]], found: int):
    assert count_across_paths(table(["service_path", "id", "type"], *rows)) == found


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], 0),
        ([("car", None), ("car", None)], 0),
        ([("car", "Number"), ("bus", "Text"), ("car", None)], 0),
        ([("car", "Number"), ("car", "Number"), ("car", "Text"), ("bus", "Text"), ("bus", "Integer")], 2),
    ],
)
def test_who_differs_from_most_of_its_type_drifts(rows: list[tuple[str | None, ...]], found: int):
    assert count_unusual_types(table(["type", "type_speed"], *rows), "type_speed") == found


@pytest.mark.parametrize(
    ("met", "counted", "found"), [(3, 3, 0), (2, 3, 1), (4, 3, 1), (9990, 10_000, 0), (9989, 10_000, 11), (0, 0, 0)]
)
def test_a_count_may_differ_by_a_thousandth(met: int, counted: int, found: int):
    assert count_mismatch(met, counted) == found
