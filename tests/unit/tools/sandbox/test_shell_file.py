"""The file that a second terminal sources beside `make up`."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contexture_sandbox.airflow import AirflowSettings
from contexture_sandbox.airflow.environment import Login
from contexture_sandbox.demo.shell import shell_file


@pytest.fixture
def settings(tmp_path: Path) -> AirflowSettings:
    return AirflowSettings(
        folder=tmp_path / "airflow",
        project=tmp_path,
        port=8123,
        publications=tmp_path / "it's here",
        home=tmp_path / "home",
        connections={"context_broker": {"conn_type": "http", "host": "127.0.0.1"}},
        java={},
        login=Login("admin", "a$b 'c"),
    )


def test_a_shell_that_sources_it_knows_files_airflow_and_connections(settings: AirflowSettings, tmp_path: Path) -> None:
    with shell_file(tmp_path / "home", settings) as path:
        wanted = (
            '"$CONTEXTURE_HOME" "$CONTEXTURE_PUBLICATIONS" "$CONTEXTURE_AIRFLOW_URL" "$CONTEXTURE_AIRFLOW_USER" '
            '"$CONTEXTURE_AIRFLOW_PASSWORD" "$AIRFLOW_CONN_CONTEXT_BROKER"'
        )
        script = f". '{path}'; printf '%s\\n' {wanted}"
        ran = subprocess.run(["/bin/sh", "-c", script], env={}, capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == [
        str(tmp_path / "home"),
        str(tmp_path / "it's here"),
        "http://127.0.0.1:8123",
        "admin",
        "a$b 'c",
        '{"conn_type": "http", "host": "127.0.0.1"}',
    ]


def test_airflow_s_own_command_line_speaks_to_the_sandbox_s_airflow(settings: AirflowSettings, tmp_path: Path) -> None:
    with shell_file(tmp_path / "home", settings) as path:
        wanted = '"$AIRFLOW_HOME" "$AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" "$AIRFLOW__CORE__DAGS_FOLDER"'
        script = f". '{path}'; printf '%s\\n' {wanted}"
        ran = subprocess.run(["/bin/sh", "-c", script], env={}, capture_output=True, text=True, check=True)

    folder = tmp_path / "airflow"
    assert ran.stdout.splitlines() == [str(folder), f"sqlite:///{folder / 'airflow.db'}", str(tmp_path / "dags")]


def test_tables_in_a_database_of_the_first_terminal_are_those_of_the_second(
    settings: AirflowSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTURE_DATABASE", "sqlite:////elsewhere/operations.sqlite")
    with shell_file(tmp_path / "home", settings) as path:
        script = f". '{path}'; printf '%s' \"$CONTEXTURE_DATABASE\""
        ran = subprocess.run(["/bin/sh", "-c", script], env={}, capture_output=True, text=True, check=True)

    assert ran.stdout == "sqlite:////elsewhere/operations.sqlite"


def test_the_command_is_found_before_all_else(settings: AirflowSettings, tmp_path: Path) -> None:
    with shell_file(tmp_path / "home", settings) as path:
        script = f". '{path}'; printf '%s' \"$PATH\""
        ran = subprocess.run(
            ["/bin/sh", "-c", script], env={"PATH": "/usr/bin"}, capture_output=True, text=True, check=True
        )

    assert ran.stdout == f"{Path(sys.executable).parent}:/usr/bin"


def test_only_its_owner_can_read_it_and_it_is_gone_afterwards(settings: AirflowSettings, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "shell.env").touch(mode=0o644)

    with shell_file(tmp_path / "home", settings) as path:
        mode = stat.S_IMODE(path.stat().st_mode)

    assert mode == 0o600
    assert not path.exists()


def test_nothing_of_the_machine_s_own_environment_is_in_it(
    settings: AirflowSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_TOKEN", "hush")

    with shell_file(tmp_path / "home", settings) as path:
        text = path.read_text()

    assert "hush" not in text
