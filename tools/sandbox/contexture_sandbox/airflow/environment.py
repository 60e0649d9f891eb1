"""The environment of an Airflow on one machine: SQLite and LocalExecutor by default, all on 127.0.0.1."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from contexture_sandbox.ports import LOOPBACK

PARALLELISM = 4
"""Worker processes; the default of 32 are all forked at once."""

CONNECTION = "AIRFLOW_CONN_"
"""What the variables of Airflow connections begin with."""

# Settings of another Airflow or Spark would change this one; without byte code every task would compile its imports.
_NOT_INHERITED = ("AIRFLOW", "SPARK_", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True, slots=True)
class Login:
    """A user of a sandbox, by default its only one; the password is made anew at each start."""

    user: str = "admin"
    password: str = field(default_factory=lambda: secrets.token_urlsafe(9), repr=False)
    role: str = "admin"


@dataclass(frozen=True, slots=True)
class AirflowSettings:
    """What a sandbox's Airflow is made of.

    Attributes:
        folder: Airflow's home: database, logs, passwords.
        project: the folder that holds `dags/` and `plugins/`.
        port: of the UI and the API.
        publications: the folder of publication files.
        home: CONTEXTURE_HOME.
        connections: Airflow connections by id, in Airflow's JSON form.
        java: variables that make children find Java.
        dags: the folder of DAG files; the project's when None.
        others: who else may log in.
        further: variables that win over those made here: other engines than the small ones.
    """

    folder: Path
    project: Path
    port: int
    publications: Path
    home: Path
    connections: Mapping[str, Mapping[str, object]]
    java: Mapping[str, str]
    login: Login = field(default_factory=Login)
    dags: Path | None = None
    others: tuple[Login, ...] = ()
    further: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """Where the UI is."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def temporary(self) -> Path:
        """Where tasks put what they need for a moment; a task that is killed leaves it there, to go with the rest."""
        return self.folder / "tmp"

    def write_files(self) -> None:
        """Writes the password file, readable by its owner alone."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        passwords = self.folder / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({login.user: login.password for login in (self.login, *self.others)}))

    @property
    def displaced(self) -> tuple[str, ...]:
        """The ids of connections of the caller's environment in whose place the sandbox has its own."""
        return tuple(name for name in self.connections if f"{CONNECTION}{name.upper()}" in os.environ)

    def environment(self) -> dict[str, str]:
        """All variables of Airflow's processes; secrets are nowhere else than here.

        Connections of the caller's environment are among them, except those with an id that the sandbox uses itself: a
        demo never sends to another Kafka whose connection has the same id.
        """
        binaries = str(Path(sys.executable).parent)
        return {
            **{name: value for name, value in os.environ.items() if _is_inherited(name)},
            **self.java,
            **self._airflow(),
            **{f"{CONNECTION}{name.upper()}": json.dumps(value) for name, value in self.connections.items()},
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONPATH": os.pathsep.join(str(self.project / name) for name in ("include", "plugins", ".")),
            "PYTHONUNBUFFERED": "1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self.temporary),
            "TMPDIR": str(self.temporary),
            "CONTEXTURE_HOME": str(self.home),
            "CONTEXTURE_PUBLICATIONS": str(self.publications),
            **self.further,
        }

    def _airflow(self) -> dict[str, str]:
        sections: dict[str, dict[str, object]] = {
            "core": {
                "load_examples": False,
                "dags_folder": self.dags or self.project / "dags",
                "plugins_folder": self.project / "plugins",
                "executor": "LocalExecutor",
                "parallelism": PARALLELISM,
                "dags_are_paused_at_creation": False,
                "simple_auth_manager_users": ",".join(
                    f"{login.user}:{login.role}" for login in (self.login, *self.others)
                ),
                "simple_auth_manager_passwords_file": self.folder / "passwords.json",
                "execution_api_server_url": f"{self.url}/execution/",
                "min_serialized_dag_update_interval": 2,
                # Its only users are those of this machine.
                "test_connection": "Enabled",
            },
            "api": {"host": LOOPBACK, "port": self.port, "base_url": self.url, "workers": 1, "secret_key": _secret()},
            "api_auth": {"jwt_secret": _secret()},
            "database": {"sql_alchemy_conn": f"sqlite:///{self.folder / 'airflow.db'}"},
            "logging": {"base_log_folder": self.folder / "logs", "namespace_levels": "alembic=WARNING"},
            "dag_processor": {"refresh_interval": 5, "min_file_process_interval": 5, "parsing_processes": 1},
            "scheduler": {"scheduler_heartbeat_sec": 1, "enable_health_check": False},
            "workers": {"execution_api_timeout": 60},
        }
        home = {"AIRFLOW_HOME": str(self.folder)}
        return home | {
            f"AIRFLOW__{section.upper()}__{name.upper()}": str(value)
            for section, options in sections.items()
            for name, value in options.items()
        }


def _is_inherited(variable: str) -> bool:
    return variable.startswith(CONNECTION) or not variable.startswith(_NOT_INHERITED)


def _secret() -> str:
    return secrets.token_hex(32)
