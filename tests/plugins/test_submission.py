"""What travels to executors on other machines."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from contexture_airflow.spark_submit import SparkSubmission, modules_zip  # noqa: E402


def test_the_zip_has_both_packages_at_its_root_and_no_caches(tmp_path: Path) -> None:
    with zipfile.ZipFile(modules_zip(tmp_path)) as archive:
        names = archive.namelist()
    assert {"contexture/errors.py", "contexture/sources/ngsi/__init__.py", "spark_jobs/stage.py"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"contexture", "spark_jobs"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_same_modules_give_the_same_names_again(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = (zipfile.ZipFile(modules_zip(tmp_path / name)).namelist() for name in ("a", "b"))
    assert first == second


@pytest.mark.parametrize(("master", "expected"), [("local[2]", "127.0.0.1"), ("spark://spark-master", None)])
def test_only_a_driver_beside_its_executors_keeps_to_the_loopback_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str, expected: str | None
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_BROKER", '{"conn_type": "http", "host": "orion", "port": 1026}')
    monkeypatch.setenv("AIRFLOW_CONN_SPARK", json.dumps({"conn_type": "spark", "host": master}))

    prepared = SparkSubmission.prepare("broker", "spark", "/var/lib/contexture", tmp_path)

    assert prepared.environment.get("SPARK_LOCAL_IP") == expected
    assert (prepared.py_files is None) == (expected is not None)
