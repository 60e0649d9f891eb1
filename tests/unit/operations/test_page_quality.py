"""Data quality over time, and what rules quarantine, as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from builders.quarantines import refused
from contexture.monitoring import RunTables
from contexture.operations.status.charts import Chart, Column, draw_chart, name_ends, scale_of
from contexture.operations.status.quality import find_trends, quality_over_time
from contexture.operations.status.quarantine import (
    SAMPLES,
    QuarantineSearch,
    RefusedEntity,
    find_refused_entity,
    quarantines,
)
from contexture.operations.status.sources import Sources, Tables
from contexture.storage.home import Home


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunTables]:
    opened = RunTables(f"sqlite:///{tmp_path}/operations.sqlite")
    yield opened
    opened.close()


def sources(storage: Home, store: RunTables | None = None) -> Sources:
    return Sources(storage, Tables(store), {"vehicles": publication()}, {}, NOON)


def ran(storage: Home, store: RunTables, sequence: int, *, failed: dict[str, str], quarantined: int) -> None:
    made = outbox(storage, publication(), sequence, [records("a")], failed=failed)
    changed = made.model_copy(update={"read": 10 * sequence, "quarantined_entities": quarantined, "warnings": {"w": 3}})
    storage.write(PublicationPaths("vehicles").manifest(made.outbox), changed.to_json())
    run = f"run{sequence}"
    store.insert_run("vehicles", run, run_id=run, mode="changes", sequence=sequence)
    store.set_run_succeeded("vehicles", run, outbox=made.outbox)


def test_runs_are_listed_the_latest_first_and_drawn_with_the_latest_at_the_right(storage, store):
    ran(storage, store, 1, failed={}, quarantined=0)
    ran(storage, store, 2, failed={"values are in a set": "critical", "no nulls": "warning"}, quarantined=4)
    found = quality_over_time(sources(storage, store), "vehicles")
    by_sequence = {run.sequence: run for run in found.runs}
    assert (by_sequence[2].read, by_sequence[2].quarantined, by_sequence[2].warnings) == (20, 4, 3)
    assert (by_sequence[2].failed, by_sequence[2].critical) == (("values are in a set", "no nulls"), True)
    assert (by_sequence[1].failed, by_sequence[1].critical) == ((), False)
    assert [(each.title, each.top) for each in found.plots] == [
        ("Events read", 20),
        ("Quarantined by rules", 4),
        ("Warnings of rules", 3),
        ("Failed expectations", 2),
    ]


def test_what_retention_has_taken_is_left_out_or_shown_as_deleted(storage, store):
    for sequence in (1, 2):
        ran(storage, store, sequence, failed={}, quarantined=0)
    storage.remove("vehicles/outbox/outbox1")
    storage.remove("vehicles/report/outbox2")
    assert [(run.sequence, run.failed) for run in quality_over_time(sources(storage, store), "vehicles").runs] == [
        (2, None)
    ]


def test_what_no_verdict_shows_is_not_drawn_as_a_run_without_failures(storage, store):
    for sequence in (1, 2):
        ran(storage, store, sequence, failed={}, quarantined=0)
    storage.remove("vehicles/report/outbox2")
    *_, failures = quality_over_time(sources(storage, store), "vehicles").plots
    assert [column.label.split(",")[0] for column in failures.columns] == ["run 1"]


def test_a_run_that_was_rejected_is_shown_with_the_others(storage, store):
    made = outbox(storage, publication(), 1, [records("a")], failed={"values are in a set": "critical"})
    store.insert_run("vehicles", "run1", run_id="scheduled__1", mode="changes", sequence=1)
    store.set_run_outbox("vehicles", "run1", outbox=made.outbox)
    store.set_run_failed("vehicles", "scheduled__1", task="quality_gate", message="1 critical expectation failed")
    [run] = quality_over_time(sources(storage, store), "vehicles").runs
    assert (run.sequence, run.failed, run.critical) == (1, ("values are in a set",), True)


def test_without_tables_or_runs_there_is_nothing_to_draw(storage, store):
    for given in (sources(storage), sources(storage, store)):
        found = quality_over_time(given, "vehicles")
        assert (found.runs, [each.columns for each in found.plots]) == ((), [(), (), (), ()])


def test_few_runs_fill_the_width_of_a_chart_and_zeros_are_shown() -> None:
    drawn = draw_chart("t", [("a", 0, "failed"), ("b", 5, "failed"), ("c", 10, "failed")], first="1st", last="3rd")
    assert drawn == Chart(
        title="t",
        top=10,
        scale=(10, 5, 0),
        columns=(
            Column(x=58.3, y=88.5, width=70.0, height=1.5, state="never", label="a"),
            Column(x=245.0, y=45.0, width=70.0, height=45.0, state="failed", label="b"),
            Column(x=431.7, y=0.0, width=70.0, height=90.0, state="failed", label="c"),
        ),
        first="1st",
        last="3rd",
    )
    assert drawn.summary == "t: the last 3 runs, 1st to 3rd, at most 10; c"


def test_a_chart_draws_the_last_forty_runs_alone() -> None:
    drawn = draw_chart("t", [(str(number), number, "pending") for number in range(45)])
    assert (len(drawn.columns), drawn.columns[0].label) == (40, "5")
    assert (drawn.columns[0].x, drawn.columns[0].width) == (1.8, 10.5)
    assert (drawn.columns[39].x, drawn.columns[39].y, drawn.columns[39].height) == (547.8, 24.0, 66.0)


def test_without_runs_there_is_a_chart_of_nothing() -> None:
    assert draw_chart("t", []) == Chart(title="t", top=0, scale=(1, 0), columns=())
    assert draw_chart("t", []).summary == "t"


@pytest.mark.parametrize(
    ("top", "scale"),
    [
        (0, (1, 0)),
        (1, (1, 0)),
        (2, (2, 1, 0)),
        (3, (4, 2, 0)),
        (5, (6, 3, 0)),
        (7, (8, 4, 0)),
        (9, (10, 5, 0)),
        (10, (10, 5, 0)),
        (11, (20, 10, 0)),
        (99, (100, 50, 0)),
        (100, (100, 50, 0)),
        (1_245, (2_000, 1_000, 0)),
        (999_999, (1_000_000, 500_000, 0)),
    ],
)
def test_a_scale_ends_with_a_round_number_and_has_its_half(top: int, scale: tuple[int, ...]) -> None:
    assert scale_of(top) == scale


def test_the_ends_of_a_chart_name_a_day_once() -> None:
    assert name_ends(NOON, NOON + timedelta(minutes=5)) == ("1 Mar 12:00", "12:05")
    assert name_ends(NOON, NOON + timedelta(days=1)) == ("1 Mar 12:00", "2 Mar 12:00")


def test_trends_are_of_the_runs_whose_outboxes_are_stored(storage, store):
    for sequence, quarantined in ((1, 0), (2, 4), (3, 0)):
        ran(storage, store, sequence, failed={}, quarantined=quarantined)
    storage.remove("vehicles/outbox/outbox3")
    store.insert_run("vehicles", "run4", run_id="run4", mode="changes", sequence=4)
    [found, empty] = find_trends(sources(storage, store), ["vehicles", "buses"])
    assert (found.name, found.records.top, found.quarantined.scale) == ("vehicles", 1, (4, 2, 0))
    assert [column.label.split(", ")[1] for column in found.quarantined.columns] == ["succeeded: 0", "succeeded: 4"]
    assert [column.state for column in found.quarantined.columns] == ["never", "failed"]
    assert [column.state for column in found.records.columns] == ["succeeded", "succeeded"]
    assert (empty.name, empty.records.columns, empty.quarantined.columns) == ("buses", (), ())


def test_what_is_held_back_is_counted_by_rule_with_a_few_identities(storage):
    for sequence in (1, 2):
        outbox(storage, publication(), sequence, [records("a")])
    refused(storage, "outbox1", {"datetime": 1})
    refused(storage, "outbox2", {"datetime": 2, "number-string": SAMPLES + 3})
    found = quarantines(sources(storage), "vehicles", page=1)
    assert [(line.outbox, line.events) for line in found.lines] == [("outbox2", SAMPLES + 5), ("outbox1", 1)]
    first, second = found.lines[0].rules
    assert (first.rule, first.rows, len(first.samples)) == ("number-string", SAMPLES + 3, SAMPLES)
    assert second.samples == (
        ("/4wheels car0 car", "breaks datetime"),
        ("/4wheels car1 car", "breaks datetime"),
    )


def test_a_structure_has_no_path(storage):
    outbox(storage, publication(), 1, [records("a")])
    refused(storage, "outbox1", {"final-content": 1}, path="")
    [line] = quarantines(sources(storage), "vehicles", page=1).lines
    assert line.rules[0].samples[0][0] == "car0 car"


def test_what_was_tried_again_is_held_back_no_more(storage):
    outbox(storage, publication(), 1, [records("a")])
    refused(storage, "outbox1", {"datetime": 2})
    with storage.write_atomically("vehicles/quarantine/outbox1/retried/outbox2.parquet") as file:
        pq.write_table(pa.table({"ordinal": pa.array([0], pa.int64())}), file)
    [line] = quarantines(sources(storage), "vehicles", page=1).lines
    assert (line.events, [rule.rows for rule in line.rules]) == (1, [1])


def test_a_quarantine_whose_outbox_is_gone_is_left_out(storage):
    refused(storage, "outbox1", {"datetime": 1})
    assert quarantines(sources(storage), "vehicles", page=1).lines == ()


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (QuarantineSearch(rule="datetime"), [("outbox2", 2), ("outbox1", 1)]),
        (QuarantineSearch(rule="number-string"), [("outbox2", 8)]),
        (QuarantineSearch(rule="number"), []),
        (QuarantineSearch(text="CAR7"), [("outbox2", 1)]),
        (QuarantineSearch(text="4WHEELS"), [("outbox2", 10), ("outbox1", 1)]),
        (QuarantineSearch(text="breaks date"), [("outbox2", 2), ("outbox1", 1)]),
        (QuarantineSearch(rule="datetime", text="car1"), [("outbox2", 1)]),
        (QuarantineSearch(text="100%"), []),
    ],
)
def test_a_filter_chooses_rows_by_rule_identity_and_message(
    storage: Home, which: QuarantineSearch, found: list[tuple[str, int]]
) -> None:
    for sequence in (1, 2):
        outbox(storage, publication(), sequence, [records("a")])
    refused(storage, "outbox1", {"datetime": 1})
    refused(storage, "outbox2", {"datetime": 2, "number-string": SAMPLES + 3})
    chosen = quarantines(sources(storage), "vehicles", page=1, which=which)
    assert [(line.outbox, line.events) for line in chosen.lines] == found
    assert chosen.paging.total == len(found)
    shown = [rule for line in chosen.lines for rule in line.rules]
    assert [len(rule.samples) for rule in shown] == [rule.rows for rule in shown]


def test_a_refused_entity_is_shown_with_the_values_that_its_rules_name(storage: Home) -> None:
    outbox(storage, publication(), 1, [records("a")])
    body = b'{"id": "car1", "speed": {"type": "Number", "value": "12"}}'
    refused(
        storage, "outbox1", {"datetime": 1, "number-string": 1}, body=body, message="'speed' has the text '12': {rule}"
    )
    store = storage.publication("vehicles")
    assert find_refused_entity(store, "outbox1", 1) == RefusedEntity(
        outbox="outbox1",
        identity="/4wheels car0 car",
        received_at=datetime(2026, 3, 1, tzinfo=UTC),
        violations=(("number-string", "error", "'speed' has the text '12': number-string"),),
        values=(("speed", '{\n  "type": "Number",\n  "value": "12"\n}'),),
        content='{\n  "id": "car1",\n  "speed": {\n    "type": "Number",\n    "value": "12"\n  }\n}',
        is_cut=False,
    )
    assert find_refused_entity(store, "outbox1", 2) is None
    assert find_refused_entity(store, "outbox2", 1) is None


@pytest.mark.parametrize(
    ("body", "content", "is_cut"),
    [(None, "", False), (b"<a>\xff</a>", "<a>\ufffd</a>", False), (b"x" * 20_001, "x" * 20_000, True)],
)
def test_content_that_is_no_json_is_shown_as_text(
    storage: Home, body: bytes | None, content: str, is_cut: bool
) -> None:
    outbox(storage, publication(), 1, [records("a")])
    refused(storage, "outbox1", {"datetime": 1}, body=body)
    found = find_refused_entity(storage.publication("vehicles"), "outbox1", 0)
    assert found is not None
    assert (found.values, found.content, found.is_cut) == ((), content, is_cut)
