"""Names and places that DAGs, operators and anyone who sets Airflow up must agree on."""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import CronTriggerTimetable, conf

PUBLICATIONS_VARIABLE = "CONTEXTURE_PUBLICATIONS"
"""Environment variable that names the folder with publication files."""

SPARK_CONNECTION = "spark_default"
"""Airflow connection to Spark; its host is the master (`local[2]`, `spark://host:7077`, `yarn`)."""

SHUFFLE_PARTITIONS_VARIABLE = "CONTEXTURE_SPARK_SHUFFLE_PARTITIONS"
"""Environment variable with `spark.sql.shuffle.partitions`; 2 when not set."""

VERIFY_SCHEDULE_VARIABLE = "CONTEXTURE_VERIFY_SCHEDULE"
"""Environment variable with a cron expression (UTC) by which the topics of all publications are verified."""

OWNER = "contexture"
RESYNCHRONISE_DAG = "resynchronise"
VERIFY_DAG = "verify_replica"
RESYNC_ASSET = "resync_requested"


def publications_folder() -> Path:
    """Where publication files lie: `CONTEXTURE_PUBLICATIONS`, else `include/publications` beside the DAGs folder."""
    given = os.environ.get(PUBLICATIONS_VARIABLE)
    return Path(given) if given else Path(conf.get("core", "dags_folder")).parent / "include" / "publications"


def shuffle_partitions() -> str:
    """How many partitions Spark shuffles into: as many as it has slots is right."""
    return os.environ.get(SHUFFLE_PARTITIONS_VARIABLE, "2")


def publication_dag_id(publication: str) -> str:
    """The id of a publication's DAG."""
    return f"publish_{publication}"


def publication_of_dag(dag_id: str) -> str | None:
    """Returns the publication whose DAG has an id; None for any other DAG."""
    prefix = publication_dag_id("")
    return dag_id.removeprefix(prefix) if dag_id.startswith(prefix) else None


def verify_timetable() -> CronTriggerTimetable | None:
    """Returns when topics are verified; None: only when a person starts it, because it reads them whole."""
    given = os.environ.get(VERIFY_SCHEDULE_VARIABLE)
    return CronTriggerTimetable(given, timezone="UTC") if given else None
