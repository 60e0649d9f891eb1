"""What is imported before the session starts, and what is imported beside it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import threading

threading.Thread.start = lambda thread: print(thread.name, "pyspark.sql" in sys.modules)
from spark_jobs import quality

quality.preload()
"""


def test_spark_is_imported_whole_before_great_expectations_is_in_a_thread() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120)

    assert done.stdout == "preload-great-expectations True\n"
