"""Parses the DAGs folder in a process of its own and prints what it found as JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

HEAVY = ("pyspark", "great_expectations", "pyarrow", "confluent_kafka", "pandas", "numpy", "sqlalchemy.orm.session")


def main() -> None:
    """Arguments: the DAGs folder, or one file of it."""
    from airflow.dag_processing.dagbag import DagBag

    before = set(sys.modules)
    # Of this process alone: other work on the machine does not count.
    started = time.process_time()
    bag = DagBag(dag_folder=sys.argv[1])
    found = {
        "seconds": time.process_time() - started,
        "errors": {Path(path).name: text for path, text in bag.import_errors.items()},
        "heavy": sorted({module for module in set(sys.modules) - before if module.split(".")[0] in HEAVY}),
        "dags": {dag_id: _described(dag) for dag_id, dag in bag.dags.items()},
    }
    sys.stdout.write("\n" + json.dumps(found))


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
        "timetable": type(dag.timetable).__name__,
        "params": {name: _param(dag.params.get_param(name)) for name in dag.params},
        "tasks": {task.task_id: _task(task) for task in dag.tasks},
    }


def _param(param: Any) -> dict[str, Any]:
    return {**param.schema, "description": param.description}


def _task(task: Any) -> dict[str, Any]:
    policy = task.partial_kwargs.get("retry_policy") if task.is_mapped else task.retry_policy
    return {
        "owner": task.owner,
        "retries": task.retries,
        "retry_policy": policy is not None,
        "pool": task.pool,
        "doc": bool(task.doc_md),
        "trigger_rule": str(getattr(task.trigger_rule, "value", task.trigger_rule)),
        "mapped": bool(task.is_mapped),
    }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main()
