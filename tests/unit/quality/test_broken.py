"""A few of those that rules warned of are found among what was evaluated."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from contexture.storage.quarantine import SAMPLES, RuleSample
from spark_jobs.quality.summary import ENTITY, STRUCTURE, sample_warnings


def evaluated(*warnings: str | None) -> Any:
    rows = [
        {"service_path": "/4wheels", "id": f"car{number}", "type": "car", "warnings": each}
        for number, each in enumerate(warnings)
    ]
    return ds.dataset(pa.Table.from_pylist(rows))


def test_each_rule_has_the_first_few_that_broke_it():
    rows = evaluated(None, "stale", "stale,range", *["stale"] * SAMPLES)
    found = sample_warnings(rows, {"stale": SAMPLES + 2, "range": 1}, ENTITY)
    assert found["range"] == (RuleSample(identity="/4wheels car2 car"),)
    assert [each.identity for each in found["stale"]] == [f"/4wheels car{n} car" for n in range(1, SAMPLES + 1)]


def test_a_rule_about_the_whole_has_none_among_rows():
    assert sample_warnings(evaluated("stale"), {"type-drift": 3}, ENTITY) == {}
    assert sample_warnings(evaluated("stale"), {}, ENTITY) == {}


def test_an_entity_of_several_events_is_a_sample_once():
    rows = ds.dataset(pa.Table.from_pylist([{"service_path": "/", "id": "a", "type": "t", "warnings": "stale"}] * 3))
    assert sample_warnings(rows, {"stale": 3}, ENTITY) == {"stale": (RuleSample(identity="/ a t"),)}


def test_a_structure_is_named_by_its_urn():
    rows = ds.dataset(pa.Table.from_pylist([{"urn": "urn:x", "kind": "Codelist", "warnings": "schema"}]))
    assert sample_warnings(rows, {"schema": 1}, STRUCTURE) == {"schema": (RuleSample(identity="urn:x Codelist"),)}
