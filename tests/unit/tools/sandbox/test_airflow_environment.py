"""The environment of the sandbox's Airflow."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from contexture_sandbox.airflow import AirflowSettings, Login
from contexture_sandbox.airflow.processes import SERVICES


@pytest.fixture
def settings(tmp_path: Path) -> AirflowSettings:
    return AirflowSettings(
        folder=tmp_path / "airflow",
        project=tmp_path / "project",
        port=18080,
        publications=tmp_path / "publications",
        home=tmp_path / "home",
        connections={"context_broker": {"conn_type": "http", "host": "127.0.0.1", "port": 1026}},
        java={"JAVA_HOME": "/somewhere/java"},
        login=Login(password="correct horse"),
    )


def test_the_password_file_is_for_its_owner_alone(settings: AirflowSettings) -> None:
    settings.write_files()
    file = settings.folder / "passwords.json"

    assert json.loads(file.read_text()) == {"admin": "correct horse"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_password_is_in_no_variable_and_no_repr(settings: AirflowSettings) -> None:
    assert not [value for value in settings.environment().values() if "correct horse" in value]
    assert "correct horse" not in repr(settings)


def test_everything_is_on_the_loopback_address(settings: AirflowSettings) -> None:
    environment = settings.environment()

    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:18080/execution/"
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_what_a_killed_task_leaves_is_removed_with_the_rest(settings: AirflowSettings) -> None:
    settings.write_files()
    environment = settings.environment()

    assert environment["TMPDIR"] == environment["SPARK_LOCAL_DIRS"] == str(settings.folder / "tmp")
    assert (settings.folder / "tmp").is_dir()


def test_services_that_would_serve_logs_on_all_addresses_do_not() -> None:
    assert dict(SERVICES)["scheduler"] == ("scheduler", "--skip-serve-logs")
    assert dict(SERVICES)["triggerer"] == ("triggerer", "--skip-serve-logs")


def test_connections_may_be_tested(settings: AirflowSettings) -> None:
    assert settings.environment()["AIRFLOW__CORE__TEST_CONNECTION"] == "Enabled"


def test_connections_travel_as_json_in_the_environment(settings: AirflowSettings) -> None:
    connection = json.loads(settings.environment()["AIRFLOW_CONN_CONTEXT_BROKER"])

    assert connection == {"conn_type": "http", "host": "127.0.0.1", "port": 1026}


def test_settings_of_another_airflow_or_spark_do_not_leak_in(
    settings: AirflowSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("SPARK_HOME", "/opt/other-spark")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    environment = settings.environment()

    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert "SPARK_HOME" not in environment
    assert "PYTHONDONTWRITEBYTECODE" not in environment


def test_connections_of_the_caller_are_passed_on_but_never_in_place_of_the_sandbox_s_own(
    settings: AirflowSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CITY_BROKER", "http://broker.city:1026")
    monkeypatch.setenv("AIRFLOW_CONN_CONTEXT_BROKER", "http://broker.city:1026")
    environment = settings.environment()

    assert environment["AIRFLOW_CONN_CITY_BROKER"] == "http://broker.city:1026"
    assert json.loads(environment["AIRFLOW_CONN_CONTEXT_BROKER"])["host"] == "127.0.0.1"
    assert settings.displaced == ("context_broker",)


def test_secrets_are_new_at_each_start_and_the_same_for_all_services(settings: AirflowSettings) -> None:
    assert len(settings.environment()["AIRFLOW__API_AUTH__JWT_SECRET"]) == 64
    assert Login().password != Login().password
