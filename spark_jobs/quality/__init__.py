"""Data quality: expectations, the checkpoint that evaluates them, and the report.

No other package imports `great_expectations`, and no module does when it is imported, because that takes 7 seconds.
`preload` spends them while the Spark session starts.
"""

from __future__ import annotations

import importlib
import os
import threading


def preload() -> threading.Thread:
    """Imports Great Expectations in the background, after `pyspark.sql`.

    Great Expectations and the session both import `pyspark.sql`, whose parts import each other. If two threads do that,
    Python breaks the deadlock of their locks and shows one of them a module that is only half imported. A stage failed
    because of that once, on a machine with five processes for each core.
    """
    importlib.import_module("pyspark.sql")
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    thread = threading.Thread(target=_import_great_expectations, name="preload-great-expectations", daemon=True)
    thread.start()
    return thread


def _import_great_expectations() -> None:
    importlib.import_module("great_expectations")
    importlib.import_module("great_expectations.expectations")
