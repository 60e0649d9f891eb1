"""The last page of a run on the cluster, for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from tools.cluster.evidence import Evidence
from tools.cluster.moments import memory_mib
from tools.cluster.platform import ClusterPlatform


def tables(evidence: Evidence) -> list[Table]:
    """What was published, and who did it."""
    return [_published(evidence), _engines(evidence)]


def write_json(file: Path, evidence: Evidence) -> None:
    """Writes everything that was found."""
    found = asdict(evidence) | {"problems": evidence.problems()}
    found["comparisons"] = {name: asdict(each) | {"equal": each.equal} for name, each in evidence.comparisons.items()}
    file.write_text(json.dumps(found, indent=1) + "\n")


def measured(platform: ClusterPlatform) -> dict[str, float]:
    """The memory of each part now, in MiB."""
    parts = {
        "Kafka, each broker": _mean(platform.kafka.process_ids),
        "PostgreSQL": memory_mib(platform.postgres.process.pid),
        "Redis": memory_mib(platform.redis.process.pid),
        "object store": memory_mib(platform.store.process.pid),
        "Spark, each worker": _mean(worker.pid for worker in platform.spark.workers),
        "Celery, each worker": _mean(worker.pid for worker in platform.workers.running.values()),
        "Airflow's other services": sum(map(memory_mib, platform.airflow.process_ids)),
    }
    return {name: round(mib, 1) for name, mib in parts.items()}


def _mean(processes: object) -> float:
    sizes = [memory_mib(each) for each in processes]  # type: ignore[attr-defined]
    return sum(sizes) / len(sizes) if sizes else 0.0


def _published(evidence: Evidence) -> Table:
    table = Table(title="What was prepared, and what a read-committed reader gets from three brokers")
    for name in ("publication", "topics", "prepared", "read back", "files on S3"):
        table.add_column(name, justify="left" if name == "publication" else "right")
    table.add_column("verdict")
    for name, each in evidence.comparisons.items():
        verdict = "[green]equal[/green]" if each.equal else f"[red]{each.different} places differ[/red]"
        numbers = (each.topics, each.prepared, each.read, evidence.objects[name])
        table.add_row(name, *map(str, numbers), verdict)
    return table


def _engines(evidence: Evidence) -> Table:
    table = Table(title="Who did it")
    table.add_column("engine")
    table.add_column("what was seen")
    tasks = ", ".join(f"{name} did {count} tasks" for name, count in sorted(evidence.celery_tasks.items()))
    table.add_row("Celery", tasks)
    executors = ", ".join(map(str, evidence.executors.values()))
    table.add_row("Spark", f"{len(evidence.applications)} applications; executors of each: {executors}")
    copies = evidence.copies
    table.add_row("Kafka", f"{copies.topics} topics, {copies.fewest} copies, a write waits for {copies.awaited}")
    for kill in evidence.kills:
        table.add_row(f"killed: {kill.kind}", f"{kill.part}, when {kill.moment}")
    memory = ", ".join(f"{name} {mib:.0f} MiB" for name, mib in evidence.memory_mib.items())
    table.add_row("memory at rest", memory)
    return table
