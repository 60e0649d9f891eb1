"""The last page of the demo: what was pulled, prepared, sent and read back, and where the reports are."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from rich.table import Table

from contexture.storage.publication_store import REPORT_PAGE
from contexture.storage.schemas import HEADER_PREFIX, REGISTRY_HEADER
from contexture_sandbox.demo.comparison import Comparison, compare, concluded
from contexture_sandbox.demo.console import DemoConsole
from contexture_sandbox.demo.plain_reader import read_topics
from contexture_sandbox.demo.scenario import PUBLICATIONS, DemoScenario

STRUCTURES_TOPIC = "structures"
REGISTRY_TRANSACTION = REGISTRY_HEADER.name.removeprefix(HEADER_PREFIX)
_RECORDS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One publication's totals over all concluded runs."""

    publication: str
    runs: int
    read: int
    accepted: int
    quarantined: dict[str, int]
    records: int
    transactions: int
    comparison: Comparison
    report: str


def summarize(scenario: DemoScenario) -> list[Row]:
    """Reads Kafka back and adds everything up."""
    return [_row(scenario, publication) for publication in PUBLICATIONS]


def show(rows: list[Row], scenario: DemoScenario, console: DemoConsole) -> None:
    """Prints the tables."""
    table = Table(title="What was published, and what an independent read-committed consumer reads back")
    for name in ("publication", "runs", "pulled", "accepted", "quarantined", "topics", "records", "transactions"):
        table.add_column(name, justify="left" if name in {"publication", "quarantined"} else "right")
    table.add_column("read back")
    for row in rows:
        refused = "\n".join(f"{count} {rule}" for rule, count in row.quarantined.items()) or "0"
        comparison = row.comparison
        verdict = "[green]equal[/green]" if comparison.equal else f"[red]{comparison.different} places differ[/red]"
        numbers = (row.runs, row.read, row.accepted)
        sizes = (comparison.topics, row.records, row.transactions)
        table.add_row(row.publication, *map(str, numbers), refused, *map(str, sizes), f"{comparison.read}: {verdict}")
    console.table(table)
    console.table(_registry_records(scenario))
    console.table(_steps(scenario))
    for row in rows:
        console.line(f"data quality report of the last run of {row.publication}: {row.report}")


def succeeded(rows: list[Row], scenario: DemoScenario) -> bool:
    """Whether all that was prepared is in Kafka, once, and the scenario went as it should."""
    return bool(rows) and all(row.comparison.equal and row.records for row in rows) and not scenario.problems


def failed_runs(scenario: DemoScenario) -> list[str]:
    """Returns a line for each run that failed, also for runs that the demo did not start."""
    runs = (run for name in PUBLICATIONS for run in scenario.stack.client.runs(f"publish_{name}"))
    return [f"run {run.run_id} of {run.dag_id} failed" for run in runs if run.state == "failed"]


def _row(scenario: DemoScenario, publication: str) -> Row:
    manifests = [manifest for _, manifest in concluded(scenario.storage.publication(publication).outboxes)]
    refused: dict[str, int] = {}
    for manifest in manifests:
        for rule, count in manifest.quarantined.items():
            refused[rule] = refused.get(rule, 0) + count
    judged = [manifest for manifest in manifests if manifest.mode != "backfill"]
    return Row(
        publication=publication,
        runs=len(manifests),
        read=sum(manifest.read for manifest in judged),
        accepted=sum(manifest.accepted for manifest in judged),
        quarantined=refused,
        records=sum(manifest.records for manifest in manifests),
        transactions=sum(manifest.transactions for manifest in manifests),
        comparison=compare(scenario.storage, publication, scenario.stack.kafka.client_settings()),
        report=_report(scenario, publication, judged[-1].outbox) if judged else "none",
    )


def _report(scenario: DemoScenario, publication: str, outbox: str) -> str:
    return scenario.storage.publication(publication).outbox(outbox).report.uri_of(REPORT_PAGE)


def _registry_records(scenario: DemoScenario) -> Table:
    """The last records of structures as a reader gets them."""
    table = Table(title="The last records of the registry's changes in Kafka")
    for name in ("topic", "key", "value", "registry transaction"):
        table.add_column(name, justify="right" if name == "registry transaction" else "left")
    last = deque(read_topics(scenario.stack.kafka.client_settings(), [STRUCTURES_TOPIC]), maxlen=_RECORDS_SHOWN)
    for record in last:
        key = (record.key or b"").decode()
        number = dict(record.headers).get(REGISTRY_TRANSACTION) or b"none"
        value = "null: deleted" if record.value is None else f"{len(record.value):,} bytes"
        table.add_row(record.topic, key, value, number.decode())
    return table


def _steps(scenario: DemoScenario) -> Table:
    table = Table(title="Seconds by step of each run")
    for name in ("run", "settle", "stage", "quality_gate", "publish", "conclude", "whole run"):
        table.add_column(name, justify="left" if name == "run" else "right")
    for publication in PUBLICATIONS:
        for number, run in enumerate(scenario.stack.client.runs(f"publish_{publication}"), 1):
            seconds: dict[str, float] = {}
            for task in scenario.stack.client.tasks(run.dag_id, run.run_id):
                seconds[task.task_id] = max(seconds.get(task.task_id, 0.0), task.seconds)
            steps = [
                f"{seconds.get(name, 0.0):.1f}" for name in ("settle", "stage", "quality_gate", "publish", "conclude")
            ]
            table.add_row(f"{publication} {number} ({run.run_type}, {run.state})", *steps, f"{run.seconds:.1f}")
    return table
