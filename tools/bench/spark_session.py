"""A Spark session in this process, with the settings that a stage task's submit gives it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.java.runtime import find_java
from spark_jobs.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Those of contexture_airflow's stage operator, which can't be imported without Airflow.
SUBMITTED = {
    "spark.master": "local[2]",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def spark_session(folder: Path) -> Iterator[SparkSession]:
    """The session; its own files lie below `folder`."""
    os.environ.update(find_java().environment())
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    own = {"spark.local.dir": str(folder / "local"), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    settings = shlex.join(
        word for name, value in {**SUBMITTED, **own}.items() for word in ("--conf", f"{name}={value}")
    )
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{settings} pyspark-shell"
    session = start_session("bench")
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
