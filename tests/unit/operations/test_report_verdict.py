"""The verdict at the top of a report: the outcome, its reason, and what changed since the run before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from contexture.monitoring import RunTables
from contexture.operations.reports.build import ReportSources, quality_report
from contexture.operations.reports.html import page
from contexture.operations.reports.model import QualityReport, ReportPeriod, ReportVerdict
from contexture.operations.status.sources import Tables
from contexture.storage.home import Home
from contexture.storage.manifests import ExpectationResult, QualityVerdict
from contexture.storage.outboxes import OutboxStatus

FOLDER = PublicationPaths("vehicles")
HOLDS: tuple[str, bool] = ("critical", True)
BROKEN: tuple[str, bool] = ("critical", False)
MARKED: tuple[str, bool] = ("warning", False)


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


def ran(storage: Home, sequence: int, results: Mapping[str, tuple[str, bool]], **changes: Any) -> None:
    """A run with its verdict, an hour after the one before it; the first is at noon."""
    made = outbox(storage, publication(), sequence, [records("a", "b")], mode=changes.pop("mode", "changes"))
    storage.write(FOLDER.manifest(made.outbox), made.model_copy(update=changes).to_json())
    judged = [
        {"name": name, "severity": severity, "success": success, "on": "entities", "description": "", "observed": ""}
        for name, (severity, success) in results.items()
    ]
    verdict = QualityVerdict(
        outbox=made.outbox,
        approved=BROKEN not in results.values(),
        results=tuple(map(ExpectationResult.model_validate, judged)),
    )
    storage.write(FOLDER.verdict(made.outbox), verdict.to_json())
    status = storage.publication("vehicles").outboxes.status(made.outbox)
    [step] = status.steps
    at = NOON + timedelta(hours=sequence - 1)
    moved = status.model_copy(update={"steps": (step.model_copy(update={"at": at}),)})
    storage.write(FOLDER.status(made.outbox), OutboxStatus.model_validate(moved).to_json())


def report_of(storage: Home, last: int = 40, store: RunTables | None = None) -> QualityReport:
    return quality_report(ReportSources(storage, Tables(store), NOON), "vehicles", ReportPeriod(last=last))


def verdict_of(storage: Home, last: int = 40) -> ReportVerdict:
    found = report_of(storage, last).verdict
    assert found is not None
    return found


def test_without_runs_there_is_no_verdict(storage):
    assert report_of(storage).verdict is None


@pytest.mark.parametrize("last", [40, 1])
def test_the_run_before_is_found_in_the_report_and_outside_of_it(storage, last):
    ran(storage, 1, {"a": MARKED, "b": BROKEN, "c": HOLDS, "gone": MARKED}, read=100, quarantined_entities=4)
    ran(storage, 2, {"a": MARKED, "b": HOLDS, "c": MARKED}, read=1_250, quarantined_entities=1)
    assert verdict_of(storage, last) == ReportVerdict(
        outcome="passed",
        sequence=2,
        sentence="Run 2 breaks 2 of 3 expectations, none of them critical; 1,250 read, 1 quarantined.",
        compared_with=1,
        changes={"read": 1150, "quarantined": -3},
        new_failures=("c",),
        fixed=("b",),
        failed_later=0,
    )
    assert (
        "Since run 1, the changes run before it: read +1,150, quarantined -3, failed expectations 1 new (c), "
        "1 fixed (b)." in page(report_of(storage, last)).decode()
    )


def test_counts_are_compared_with_the_last_run_of_the_same_mode(storage):
    ran(storage, 1, {}, mode="full", read=100)
    ran(storage, 2, {}, read=7)
    ran(storage, 3, {}, mode="full", read=100)
    found = verdict_of(storage)
    assert (found.compared_with, found.changes) == (1, {"read": 0, "quarantined": 0})
    assert "the full run before it: read ±0, quarantined ±0" in page(report_of(storage)).decode()


def test_a_first_run_has_nothing_to_be_compared_with(storage):
    ran(storage, 1, {"a": HOLDS, "b": HOLDS}, read=12)
    found = verdict_of(storage)
    assert found.sentence == "Run 1 meets 2 of 2 expectations; 12 read, 0 quarantined."
    assert (found.outcome, found.compared_with, found.changes, found.new_failures) == ("passed", None, {}, None)
    text = page(report_of(storage)).decode()
    assert "✓ Passed" in text
    assert "No earlier changes run is stored to compare it with." in text


def test_a_critical_failure_is_named(storage):
    ran(storage, 1, {"a": MARKED, "b": BROKEN, "c": BROKEN, "d": BROKEN, "e": BROKEN})
    found = verdict_of(storage)
    assert found.outcome == "failed"
    assert found.sentence == "Run 1 breaks 4 critical of 5 expectations: b, c, d, …."
    assert "✗ Failed" in page(report_of(storage)).decode()


def test_a_run_that_was_rejected_for_another_reason_failed(storage):
    ran(storage, 1, {"a": HOLDS})
    storage.publication("vehicles").outboxes.set_status("outbox1", "rejected", reason="count-zero")
    found = verdict_of(storage)
    assert found.outcome == "failed"
    assert found.sentence == "Run 1 was rejected, although it breaks no critical expectation that is stored."


def test_a_verdict_that_is_no_longer_stored_is_neither_passed_nor_compared(storage):
    ran(storage, 1, {"a": BROKEN}, read=5)
    ran(storage, 2, {"a": HOLDS}, read=9)
    storage.remove(FOLDER.report("outbox2"))
    found = verdict_of(storage)
    assert (found.outcome, found.sentence) == ("unknown", "The verdict on run 2 is no longer stored.")
    assert (found.changes["read"], found.new_failures, found.fixed) == (4, None, None)
    assert "failed expectations not known." in page(report_of(storage)).decode()


def test_later_runs_that_failed_are_counted(storage, tmp_path):
    store = RunTables(f"sqlite:///{tmp_path}/operations.sqlite")
    ran(storage, 1, {"a": HOLDS})
    store.set_run_failed("vehicles", "scheduled__2", task="stage", message="no broker")
    found = report_of(storage, store=store)
    store.close()
    assert found.verdict is not None
    assert found.verdict.failed_later == 1
    assert "1 later run failed." in page(found).decode()
