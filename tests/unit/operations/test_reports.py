"""The report of a publication over time: which runs it is about, what it shows of them, and that its page is safe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from builders.quarantines import refused
from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables
from contexture.operations.reports.build import ReportSources, quality_report
from contexture.operations.reports.html import DETAILED, LATEST, charts, grouped, page
from contexture.operations.reports.model import QualityReport, ReportPeriod
from contexture.operations.status.charts import COLUMNS
from contexture.operations.status.sources import Tables
from contexture.records.changes.attribute_types import AttributeType, AttributeTypes
from contexture.storage.delivery import DeadLetterIndex
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest
from contexture.storage.outboxes import OutboxStatus
from contexture.storage.publication_store import run_name
from contexture.storage.quarantine import SAMPLES, RuleSample, RuleSamples

pytestmark = pytest.mark.slow

FOLDER = PublicationPaths("vehicles")
ALL = ReportPeriod(last=40)
ATTACK = "</code><script>alert('car')</script><img src=x onerror=alert(2)>"


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunTables]:
    opened = RunTables(f"sqlite:///{tmp_path}/operations.sqlite")
    yield opened
    opened.close()


def ran(
    storage: Home,
    sequence: int,
    *,
    failed: Mapping[str, str] | None = None,
    types: list[AttributeType] | None = None,
    **changes: Any,
) -> None:
    """A run an hour after the one before it; the first at noon."""
    made = outbox(
        storage, publication(), sequence, [records("a", "b")], mode=changes.pop("mode", "changes"), failed=failed
    )
    storage.write(FOLDER.manifest(made.outbox), made.model_copy(update=changes).to_json())
    if types is not None:
        storage.write(FOLDER.seen_types(made.outbox), AttributeTypes.of(types).to_json())
    status = storage.publication("vehicles").outboxes.status(made.outbox)
    [step] = status.steps
    at = NOON + timedelta(hours=sequence - 1)
    moved = status.model_copy(update={"steps": (step.model_copy(update={"at": at}),)})
    storage.write(FOLDER.status(made.outbox), OutboxStatus.model_validate(moved).to_json())


def landed(storage: Home, sequence: int, held: int, **changes: Any) -> None:
    manifest = {
        "run": f"run{sequence}",
        "mode": "changes",
        "source": "http://broker",
        "queries": (),
        "watermark_from": None,
        "watermark_to": None,
        "rows": held,
        "present": 0,
        "source_count": held,
        "complete": True,
        "started_at": NOON,
        "finished_at": NOON,
        "broker_time": None,
        "files": {},
        "digest": "",
    }
    document = LandingManifest.model_validate(manifest | changes)
    storage.write(FOLDER.landing_manifest(f"run{sequence}"), document.to_json())


def report_of(storage: Home, period: ReportPeriod = ALL, store: RunTables | None = None) -> QualityReport:
    return quality_report(ReportSources(storage, Tables(store), NOON), "vehicles", period)


def test_a_publication_without_runs_has_an_empty_report(storage):
    found = report_of(storage)
    assert (found.runs, found.rules, found.expectations, found.many) == ((), (), (), "entities")
    assert "No run with an outbox is kept" in page(found).decode()


@pytest.mark.parametrize(
    ("period", "sequences"),
    [
        (ReportPeriod(last=2), [4, 5]),
        (ReportPeriod(since=NOON + timedelta(hours=1), until=NOON + timedelta(hours=3)), [2, 3]),
        (ReportPeriod(since=NOON + timedelta(hours=1), last=1), [5]),
        (ReportPeriod(until=NOON), []),
        (ReportPeriod(run="outbox3"), [3]),
        (ReportPeriod(run="run3"), [3]),
        (ReportPeriod(run="scheduled__4"), [4]),
    ],
)
def test_it_is_about_the_runs_that_were_asked_for(storage, period, sequences):
    for sequence in range(1, 6):
        ran(storage, sequence, **({"run": run_name("scheduled__4")} if sequence == 4 else {}))
    assert [run.sequence for run in report_of(storage, period).runs] == sequences


@pytest.mark.parametrize("run", ["outbox7", "out"])
def test_a_run_that_is_not_kept_or_not_meant_clearly_is_refused(storage, run):
    ran(storage, 1)
    with pytest.raises(ConfigurationError, match="no run or outbox"):
        report_of(storage, ReportPeriod(run=run))
    ran(storage, 2)
    with pytest.raises(ConfigurationError, match="2 outboxes begin with outb"):
        report_of(storage, ReportPeriod(run="outb"))


def test_a_damaged_outbox_does_not_hide_the_others(storage):
    for sequence in (1, 2):
        ran(storage, sequence)
    storage.write(FOLDER.manifest("outbox1"), b"{")
    assert [run.sequence for run in report_of(storage).runs] == [2]


def test_the_last_runs_are_as_many_as_were_asked_for_though_some_are_damaged(storage):
    for sequence in range(1, 6):
        ran(storage, sequence)
    for damaged in ("outbox3", "outbox5"):
        storage.write(FOLDER.manifest(damaged), b"{")
    assert [run.sequence for run in report_of(storage, ReportPeriod(last=2)).runs] == [2, 4]


def test_expectations_are_shown_with_what_was_observed_and_how_often_they_failed(storage):
    ran(storage, 1, failed={"no nulls": "warning"})
    ran(storage, 2, failed={"no nulls": "warning", "in a set": "critical"})
    ran(storage, 3)
    found = report_of(storage)
    assert [(run.approved, [each.name for each in run.failures]) for run in found.runs] == [
        (True, ["no nulls"]),
        (False, ["in a set", "no nulls"]),
        (True, []),
    ]
    first, second = found.expectations
    assert (first.name, first.judged, first.failed, first.observed) == ("no nulls", 2, 2, "7 of 9")
    assert (second.name, second.severity, second.last_failed_at) == ("in a set", "critical", NOON + timedelta(hours=1))


def test_a_verdict_that_is_no_longer_kept_is_not_taken_for_a_good_one(storage):
    ran(storage, 1)
    storage.remove(FOLDER.report("outbox1"))
    [run] = report_of(storage).runs
    assert (run.approved, run.expectations) == (None, ())


def test_rules_are_counted_and_summed_up_over_the_runs(storage):
    ran(storage, 1, quarantined={"datetime": 2}, warnings={"stale": 1})
    ran(storage, 2, quarantined={"datetime": 3, "number-string": 9})
    found = report_of(storage)
    assert [(each.rule, each.severity, each.count, each.runs) for each in found.rules] == [
        ("number-string", "error", 9, 1),
        ("datetime", "error", 5, 2),
        ("stale", "warning", 1, 1),
    ]
    assert [(each.rule, each.count) for each in found.runs[1].rules] == [("number-string", 9), ("datetime", 3)]


def test_samples_come_from_the_run_s_report_or_else_from_quarantine(storage):
    counts = {"datetime": SAMPLES + 2, "number-string": 1}
    for sequence in (1, 2):
        ran(storage, sequence, quarantined=counts, failed={"in a set": "warning"})
        refused(storage, f"outbox{sequence}", counts)
    kept = RuleSamples(
        outbox="outbox2",
        rules={"datetime": (RuleSample(identity="/4wheels car7 car", message="it is no date"),)},
        expectations={"in a set": ("car7",)},
    )
    storage.write(FOLDER.samples("outbox2"), kept.to_json())
    first, second = report_of(storage).runs
    assert [(each.rule, len(each.samples)) for each in first.rules] == [("datetime", SAMPLES), ("number-string", 1)]
    assert first.rules[1].samples[0] == RuleSample(identity="/4wheels car0 car", message="breaks number-string")
    assert second.rules[0].samples == kept.rules["datetime"]
    assert second.expectations[0].examples == ("car7",)


def test_the_volume_is_compared_with_the_last_run_that_knew_it(storage):
    for sequence, held in ((1, 100), (3, 80), (4, 0)):
        landed(storage, sequence, held)
    landed(storage, 2, 7, mode="notifications")
    for sequence in range(1, 6):
        ran(storage, sequence)
    assert [(run.in_source, run.in_source_change) for run in report_of(storage).runs] == [
        (100, None),
        (None, None),
        (80, -0.2),
        (0, -1.0),
        (None, None),
    ]


def test_a_registry_s_log_does_not_say_how_much_there_is(storage):
    landed(storage, 1, 5, complete=False, registry_transaction=7)
    ran(storage, 1)
    assert report_of(storage).runs[0].in_source is None


def test_types_are_compared_with_those_of_all_earlier_runs(storage):
    ran(storage, 1, types=[AttributeType("car", "speed", "Number"), AttributeType("car", "brand", "Text")])
    ran(storage, 2, types=[AttributeType("car", "speed", "Text"), AttributeType("car", "wheels", "Number")])
    ran(storage, 3, types=[AttributeType("car", "speed", "Number"), AttributeType("car", "speed", "Text")])
    ran(storage, 4, types=[AttributeType("car", "speed", "Integer")])
    drift = [[(new.attribute, new.type, new.before) for new in run.new_types] for run in report_of(storage).runs]
    assert drift == [[], [("speed", "Text", ("Number",))], [], [("speed", "Integer", ("Number", "Text"))]]
    assert [run.attributes for run in report_of(storage, ReportPeriod(last=2)).runs] == [1, 1]
    assert report_of(storage, ReportPeriod(last=1)).runs[0].new_types[0].before == ("Number", "Text")


def test_what_was_rejected_becomes_no_earlier_type(storage):
    ran(storage, 1, types=[AttributeType("car", "speed", "Number")])
    ran(storage, 2, types=[AttributeType("car", "speed", "Text")])
    storage.publication("vehicles").outboxes.set_status("outbox2", "rejected", reason="type-drift")
    ran(storage, 3, types=[AttributeType("car", "speed", "Text")])
    assert [len(run.new_types) for run in report_of(storage).runs] == [0, 1, 1]


def test_airflow_s_names_and_failed_runs_come_from_the_tables(storage, store):
    ran(storage, 1)
    store.insert_run("vehicles", "run1", run_id="scheduled__1", mode="changes", sequence=1)
    store.set_run_failed("vehicles", "scheduled__2", task="stage", message="no broker")
    found = report_of(storage, ReportPeriod(), store)
    assert found.runs[0].run_id == "scheduled__1"
    assert [(run.run_id, run.failed_task, run.message) for run in found.stopped] == [
        ("scheduled__2", "stage", "no broker")
    ]
    assert report_of(storage, ReportPeriod(run="outbox1"), store).stopped == ()
    assert report_of(storage, ReportPeriod(until=NOON - timedelta(days=1)), store).stopped == ()


def test_runs_that_failed_stand_in_the_page_where_no_run_had_an_outbox(storage, store):
    store.set_run_failed("vehicles", "scheduled__2", task="stage", message="no broker")
    found = report_of(storage, ReportPeriod(), store)
    text = page(found).decode()
    assert (len(found.stopped), found.runs) == (1, ())
    assert "stage: no broker" in text
    assert text.count("Runs that failed") == 1


def test_its_json_form_keeps_its_shape(storage):
    """Scripts read it: a change of this test is a change of `FORMAT_VERSION`, unless it only adds."""
    ran(
        storage,
        1,
        quarantined={"datetime": 1},
        failed={"in a set": "critical"},
        types=[AttributeType("car", "speed", "Number")],
    )
    ran(storage, 2, types=[AttributeType("car", "speed", "Text")])
    document = json.loads(report_of(storage).to_json())
    assert document["format_version"] == 1
    assert set(document) == {
        "format_version", "publication", "description", "many", "made_at", "period", "verdict", "scores", "totals",
        "runs", "rules", "expectations", "stopped", "tables_problem",
    }  # fmt: skip
    assert set(document["verdict"]) == {
        "outcome", "sequence", "sentence", "compared_with", "changes", "new_failures", "fixed", "failed_later",
    }  # fmt: skip
    assert set(document["scores"][0]) == {"dimension", "percent", "passed", "checks", "failed"}
    assert set(document["runs"][0]) == {
        "outbox", "sequence", "run", "run_id", "mode", "status", "prepared_at", "received_from", "received_to",
        "in_source", "in_source_change", "read", "accepted", "unchanged", "repeated", "quarantined", "upserts",
        "deletes", "records", "bytes", "topics", "dead_letters", "attributes", "new_types", "approved",
        "expectations", "rules",
    }  # fmt: skip
    assert set(document["runs"][0]["expectations"][0]) == {
        "name", "severity", "success", "on", "description", "observed", "raised", "examples",
    }  # fmt: skip
    assert set(document["runs"][0]["rules"][0]) == {"rule", "severity", "count", "samples"}
    assert set(document["runs"][1]["new_types"][0]) == {"entity_type", "attribute", "type", "before"}
    assert QualityReport.model_validate(document) == report_of(storage)


class Tags(HTMLParser):
    """Names of all elements, and the addresses they point to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture
def hostile(storage: Home, store: RunTables) -> str:
    ran(storage, 1, types=[AttributeType(ATTACK, ATTACK, "Number")])
    ran(
        storage, 2, failed={ATTACK: "warning"}, quarantined={ATTACK: 1}, warnings={ATTACK: 2},
        types=[AttributeType(ATTACK, ATTACK, ATTACK)],
    )  # fmt: skip
    samples = RuleSamples(
        outbox="outbox2",
        rules={ATTACK: (RuleSample(identity=ATTACK, message=ATTACK),)},
        expectations={ATTACK: (ATTACK,)},
    )
    storage.write(FOLDER.samples("outbox2"), samples.to_json())
    store.set_run_failed("vehicles", ATTACK, task=ATTACK, message=ATTACK)
    return page(report_of(storage, ReportPeriod(), store)).decode()


def test_the_page_is_one_file_without_script_that_loads_nothing(hostile):
    tags = Tags(hostile)
    assert tags.names & {"script", "link", "img", "iframe", "base", "object", "a", "form"} == set()
    assert tags.attributes & {"src", "href", "onerror", "onload", "action", "srcset"} == set()
    assert re.findall(r"url\(|@import|https?://", hostile) == []
    assert "light-dark(" in hostile


def test_what_others_wrote_is_text(hostile):
    assert "<script" not in hostile
    # An attribute, its entity type and types twice; the expectation, its description and an example; the rule; a
    # sample; a failed run.
    assert hostile.count("&lt;script&gt;alert(&#39;car&#39;)&lt;/script&gt;") >= 12


def test_a_failed_expectation_of_the_latest_run_has_the_rows_that_broke_it(storage):
    ran(storage, 1, failed={"in a set": "warning", "no nulls": "critical"}, quarantined={"number-string": 2})
    samples = RuleSamples(outbox="outbox1", rules={}, expectations={"in a set": ("car7 · blue", "car9 · green")})
    storage.write(FOLDER.samples("outbox1"), samples.to_json())
    text = page(report_of(storage)).decode()
    _, _, failed = text.partition("<h2>Failed expectations of run 1</h2>")
    failed = failed.partition("</section>")[0]
    assert failed.index("no nulls holds") < failed.index("in a set holds")
    assert "<code>car7 · blue</code><br><code>car9 · green</code>" in failed
    assert failed.count("No example is stored.") == 1
    assert "<h2>Failed expectations of run" not in page(report_of(storage, ReportPeriod(until=NOON))).decode()


def test_only_a_report_that_the_page_shows_has_links_to_the_quarantine(storage):
    ran(
        storage, 1, failed={"in a set": "warning"}, quarantined={"number-string": 2, ATTACK: 1}, quarantined_entities=2,
        warnings={"stale": 1},
    )  # fmt: skip
    found = report_of(storage)
    assert Tags(page(found).decode()).names & {"a"} == set()
    text = page(found, "/contexture/publications/vehicles/quarantine").decode()
    assert '<a href="/contexture/publications/vehicles/quarantine">quarantine</a>' in text
    link = '<a href="/contexture/publications/vehicles/quarantine?rule=number-string"><code>number-string</code></a>'
    assert text.count(link) == 2
    assert "?rule=stale" not in text
    assert "<script" not in text


def test_plots_are_drawn_of_what_is_known(storage):
    ran(storage, 1, quarantined_entities=3)
    text = page(report_of(storage)).decode()
    assert "Entities in the source" not in text
    assert (
        '<rect class="failed" x="245.0" y="22.5" width="70.0" height="67.5"><title>run 1, 2026-03-01 12:00: 3</title>'
        in text
    )


def test_the_trend_has_a_column_for_each_of_the_last_30_runs_with_a_scale_and_times(storage):
    for sequence in range(1, 33):
        ran(storage, sequence, quarantined_entities=sequence)
    found = report_of(storage)
    text = page(found).decode()
    trend, _, rest = text.partition("<h2>All 32 runs</h2>")
    _, _, trend = trend.partition("<h2>Trend of the last 30 runs</h2>")
    _, _, quarantined = trend.partition("Quarantined by rules")
    quarantined = quarantined.partition("</figure>")[0]
    assert quarantined.count("<rect") == 30
    assert "<title>run 2, " not in quarantined
    assert "<title>run 3, 2026-03-01 14:00: 3</title>" in quarantined
    assert "<span>40</span><span>20</span><span>0</span>" in quarantined
    assert "<span>1 Mar 14:00</span><span>2 Mar 19:00</span>" in quarantined
    assert "<title>run 1, 2026-03-01 12:00: 1</title>" in rest


def test_a_report_of_fewer_runs_has_no_second_drawing_of_them(storage):
    for sequence in (1, 2):
        ran(storage, sequence)
    found = report_of(storage)
    text = page(found).decode()
    assert "<h2>Trend of the last 2 runs</h2>" in text
    assert "<h2>All 2 runs</h2>" not in text
    assert next((each.title, each.first, each.last) for each in charts(found.runs, "entities")) == (
        "Events read", "1 Mar 12:00", "13:00",
    )  # fmt: skip


def test_more_runs_than_columns_are_grouped_by_the_greatest_and_the_latest_group_is_whole():
    values = [(str(number), number % 3, "sent") for number in range(COLUMNS + 1)]
    drawn = grouped(values)
    assert len(drawn) == 21
    assert drawn[0] == ("0", 0, "sent")
    assert drawn[-1] == ("40", 1, "sent")
    assert grouped(values[:3]) == values[:3]
    assert grouped([]) == []


def test_a_long_report_shows_the_latest_runs_and_those_in_trouble(storage):
    for sequence in range(1, LATEST + 3):
        ran(storage, sequence, quarantined_entities=1 if sequence % 5 == 0 else 0)
    text = page(report_of(storage, ReportPeriod())).decode()
    assert f"The latest {LATEST} of {LATEST + 2}" in text
    assert text.count("<details") == DETAILED


def test_records_that_can_never_be_sent_are_shown_of_their_run(storage):
    ran(storage, 1)
    ran(storage, 2)
    assert "can never be sent" not in page(report_of(storage)).decode()
    manifest = storage.publication("vehicles").outboxes.manifest("outbox2")
    storage.publication(manifest.publication).outbox(manifest.outbox).write_dead_letters(
        DeadLetterIndex(shards={0: (1,)})
    )
    found = report_of(storage)
    assert [run.dead_letters for run in found.runs] == [0, 1]
    assert found.totals["dead_letters"] == 1
    assert "1 of them to the dead-letter topic, because they can never be sent" in page(found).decode()
