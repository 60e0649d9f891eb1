"""Parses DAG files in a process of its own and prints what it found as JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

HEAVY = ("pyspark", "great_expectations", "pyarrow", "confluent_kafka", "pandas", "numpy")
CONNECTIONS: list[str] = []


def main() -> None:
    """Reads a list of scenarios from standard input: publications, file and dag_id. Each is parsed on its own."""
    import airflow.dag_processing.dagbag  # noqa: F401 - what Airflow itself loads is not counted

    before = set(sys.modules)
    sys.addaudithook(lambda event, arguments: CONNECTIONS.append(event) if event == "socket.connect" else None)
    found = [_parsed(scenario, before) for scenario in json.load(sys.stdin)]
    sys.stdout.write("\n" + json.dumps(found))


def _parsed(scenario: dict[str, Any], before: set[str]) -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag

    os.environ["CONTEXTURE_PUBLICATIONS"] = scenario["publications"]
    os.environ.pop("CONTEXTURE_VERIFY_SCHEDULE", None)
    os.environ.update(scenario.get("variables", {}))
    os.environ.pop("_AIRFLOW_PARSING_CONTEXT_DAG_ID", None)
    if scenario["dag_id"]:
        os.environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] = scenario["dag_id"]
    # Of this process alone: other work on the machine does not count.
    started = time.process_time()
    bag = DagBag(dag_folder=scenario["file"])
    return {
        "seconds": time.process_time() - started,
        "errors": {Path(path).name: text for path, text in bag.import_errors.items()},
        "heavy": sorted({module for module in set(sys.modules) - before if module.split(".")[0] in HEAVY}),
        "connections": len(CONNECTIONS),
        "dags": {dag_id: _described(dag) for dag_id, dag in bag.dags.items()},
    }


def _described(dag: Any) -> dict[str, Any]:
    return {
        "edges": [
            f"{task.task_id} -> {other}"
            for task in dag.topological_sort()
            for other in sorted(task.downstream_task_ids)
        ],
        "doc": dag.doc_md or "",
        "tags": sorted(dag.tags),
        "catchup": dag.catchup,
        "max_active_runs": dag.max_active_runs,
        "paused": dag.is_paused_upon_creation,
        "minutes": [alert.interval.total_seconds() / 60 for alert in dag.deadline or ()],
        "timetable": type(dag.timetable).__name__,
        "params": {name: _param(dag.params.get_param(name)) for name in dag.params},
        "tasks": {task.task_id: _task(task) for task in dag.tasks},
    }


def _param(param: Any) -> dict[str, Any]:
    return {**param.schema, "description": param.description}


def _task(task: Any) -> dict[str, Any]:
    policy = task.partial_kwargs.get("retry_policy") if task.is_mapped else task.retry_policy
    limit = task.partial_kwargs.get("execution_timeout") if task.is_mapped else task.execution_timeout
    return {
        "owner": task.owner,
        "retries": task.retries,
        "retry_policy": policy is not None,
        "pool": task.pool,
        "doc": bool(task.doc_md),
        "trigger_rule": str(getattr(task.trigger_rule, "value", task.trigger_rule)),
        "mapped": bool(task.is_mapped),
        "hours": limit.total_seconds() / 3600 if limit else None,
        "failure_notifiers": [type(each).__name__ for each in task.on_failure_callback or ()],
    }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main()
