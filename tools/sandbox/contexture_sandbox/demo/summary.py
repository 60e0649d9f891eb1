"""The last page of the demo: what was pulled, prepared, sent and read back, and where the reports are."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from rich.table import Table

from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.schemas import HEADER_PREFIX, REGISTRY_HEADER
from contexture_sandbox.demo.comparison import Comparison, compare, concluded
from contexture_sandbox.demo.console import Narrator
from contexture_sandbox.demo.plain_reader import read_topics
from contexture_sandbox.demo.story import PUBLICATIONS, Story

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


def summarize(story: Story) -> list[Row]:
    """Reads Kafka back and adds everything up."""
    return [_row(story, publication) for publication in PUBLICATIONS]


def show(rows: list[Row], story: Story, narrator: Narrator) -> None:
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
    narrator.table(table)
    narrator.table(_registry_records(story))
    narrator.table(_steps(story))
    for row in rows:
        narrator.line(f"data quality report of the last run of {row.publication}: {row.report}")


def succeeded(rows: list[Row], story: Story) -> bool:
    """Whether all that was prepared is in Kafka, once, and the story went as it should."""
    return bool(rows) and all(row.comparison.equal and row.records for row in rows) and not story.problems


def failed_runs(story: Story) -> list[str]:
    """Runs that failed, those that nobody of the demo started too."""
    runs = (run for name in PUBLICATIONS for run in story.stack.client.runs(f"publish_{name}"))
    return [f"run {run.run_id} of {run.dag_id} failed" for run in runs if run.state == "failed"]


def _row(story: Story, publication: str) -> Row:
    manifests = [manifest for _, manifest in concluded(Outboxes(story.storage, publication))]
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
        comparison=compare(story.storage, publication, story.stack.kafka.client_settings()),
        report=_report(story, publication, judged[-1].outbox) if judged else "none",
    )


def _report(story: Story, publication: str, outbox: str) -> str:
    return f"{story.storage.root}/{PublicationFolder(publication).report(outbox)}/index.html"


def _registry_records(story: Story) -> Table:
    """The last records of structures as a reader gets them."""
    table = Table(title="The last records of the registry's changes in Kafka")
    for name in ("topic", "key", "value", "registry transaction"):
        table.add_column(name, justify="right" if name == "registry transaction" else "left")
    last = deque(read_topics(story.stack.kafka.client_settings(), [STRUCTURES_TOPIC]), maxlen=_RECORDS_SHOWN)
    for record in last:
        key = (record.key or b"").decode()
        number = dict(record.headers).get(REGISTRY_TRANSACTION) or b"none"
        value = "null: deleted" if record.value is None else f"{len(record.value):,} bytes"
        table.add_row(record.topic, key, value, number.decode())
    return table


def _steps(story: Story) -> Table:
    table = Table(title="Seconds by step of each run")
    for name in ("run", "settle", "stage", "quality_gate", "publish", "conclude", "whole run"):
        table.add_column(name, justify="left" if name == "run" else "right")
    for publication in PUBLICATIONS:
        for number, run in enumerate(story.stack.client.runs(f"publish_{publication}"), 1):
            seconds: dict[str, float] = {}
            for task in story.stack.client.tasks(run.dag_id, run.run_id):
                seconds[task.task_id] = max(seconds.get(task.task_id, 0.0), task.seconds)
            steps = [
                f"{seconds.get(name, 0.0):.1f}" for name in ("settle", "stage", "quality_gate", "publish", "conclude")
            ]
            table.add_row(f"{publication} {number} ({run.run_type}, {run.state})", *steps, f"{run.seconds:.1f}")
    return table
