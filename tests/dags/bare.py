"""As many DAGs as there are publications, of as many tasks, with nothing of Contexture in them: what Airflow costs."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable

for file in sorted(Path(os.environ["CONTEXTURE_PUBLICATIONS"]).glob("*.yaml")):
    timetable = CronDataIntervalTimetable("*/5 * * * *", timezone="UTC")
    with DAG(dag_id=f"bare_{file.stem}", schedule=timetable, start_date=datetime(2025, 1, 1, tzinfo=UTC)) as dag:
        tasks = [BaseOperator(task_id=f"task{number}") for number in range(5)]
        for before, after in pairwise(tasks):
            before >> after
    globals()[dag.dag_id] = dag
