"""The whole platform on one machine: test sources, Kafka, Airflow. A context manager that leaves nothing behind."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from contexture.errors import ConfigurationError
from contexture.java.runtime import Java, find_java
from contexture.kafka import ClientSettings
from contexture.operations.pools import POOLS
from contexture_airflow.spark_class_data import record_class_data
from contexture_sandbox.airflow import AirflowClient, AirflowProcesses, AirflowSettings, Login
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.context_broker.entities import seed_entities
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.ports import free_port
from contexture_sandbox.registry import TestRegistry, seed_message

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What a stack is made of.

    Attributes:
        publications: folder of publication files.
        home: CONTEXTURE_HOME; it stays afterwards.
        airflow_port: port of the UI; a free one when 0.
        broker_port: port of the test context broker; a free one when 0.
        kafka_port: Kafka's port; a free one when 0.
        entities: how many entities the test context broker holds when Airflow starts.
        registry_port: port of the test registry; a free one when 0.
        structures: how many structures it holds when Airflow starts.
        prepare: is given the copied publication files before Airflow sees them.
        dags: folder of DAG files; the project's when None.
        others: who may log in besides the administrator.
        in_place: whether the publication files are read where they are; else from a copy, so that a demo may change it.
    """

    publications: Path
    home: Path
    airflow_port: int = 0
    broker_port: int = 0
    kafka_port: int = 0
    entities: int = 0
    registry_port: int = 0
    structures: int = 0
    prepare: Callable[[Path], None] = field(default=lambda folder: None)
    dags: Path | None = None
    others: tuple[Login, ...] = ()
    in_place: bool = False


class Stack:
    """A running platform."""

    def __init__(self, options: StackOptions, progress: Progress) -> None:
        self.options = options
        self.project = project_folder()
        self._progress = progress
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress("stopping everything")
        self._stack.close()

    def kafka_settings(self) -> ClientSettings:
        """How clients reach the stack's Kafka."""
        return ClientSettings.from_extra(self.kafka.client_settings())

    def _start(self) -> None:
        runtime = find_java()
        self._progress(f"using Java {runtime.version} ({runtime.origin})")
        self.folder = Path(tempfile.mkdtemp(prefix="contexture-"))
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.publications = self.publication_files()
        self._progress("starting the test context broker")
        self.broker = self._stack.enter_context(TestBroker(self.options.broker_port))
        loaded = self.broker.load(seed_entities(self.options.entities))
        self._progress(f"it holds {loaded.created} entities")
        self._start_registry()
        self._progress("starting Kafka (the first start on a machine fetches it)")
        self.kafka = self._stack.enter_context(self._new_kafka())
        self._start_engines(runtime)
        self._start_airflow({**runtime.environment(), **record_class_data(runtime, self._progress)})

    def publication_files(self) -> Path:
        """The folder that Airflow reads."""
        given = self.options.publications.absolute()
        if not given.is_dir():
            raise ConfigurationError(
                f"there is no folder {given} for publication files",
                next_step="make it, or correct CONTEXTURE_PUBLICATIONS",
            )
        if self.options.in_place:
            return given
        copies = self.folder / "publications"
        shutil.copytree(given, copies)
        self.options.prepare(copies)
        return copies

    def _new_kafka(self) -> EmbeddedKafka:
        ports = (self.options.kafka_port,) if self.options.kafka_port else ()
        return EmbeddedKafka(ports=ports, progress=self._progress)

    def _start_engines(self, runtime: Java) -> None:
        """Starts what Airflow needs besides: nothing here, for it does everything itself."""

    def _engine_variables(self) -> dict[str, str]:
        """The variables that lead Airflow to other engines than its own."""
        return {}

    def _spark_connection(self) -> dict[str, object]:
        return {"conn_type": "spark", "host": "local[2]"}

    def _start_registry(self) -> None:
        self._progress("starting the test registry")
        self.registry = self._stack.enter_context(TestRegistry(port=self.options.registry_port))
        if self.options.structures:
            self.registry.submit(seed_message(self.options.structures))
        self._progress(f"it holds {self.options.structures} structures")

    def _start_airflow(self, environment: Mapping[str, str]) -> None:
        self.settings = AirflowSettings(
            folder=self.folder / "airflow",
            project=self.project,
            port=self.options.airflow_port or free_port(),
            publications=self.publications,
            home=self.options.home,
            connections=self._connections(),
            java=environment,
            dags=self.options.dags,
            others=self.options.others,
            further=self._engine_variables(),
        )
        self.airflow = AirflowProcesses(self.settings, self._progress)
        self.client = AirflowClient(self.settings)
        self._stack.callback(self.client.close)
        # A task of a missing pool never starts, so they are made before anything is scheduled.
        self.airflow.before_schedule = self._before_schedule
        self._stack.enter_context(self.airflow)

    def _before_schedule(self) -> None:
        self.client.make_pools((name, slots, text) for name, (slots, text) in POOLS.items())

    def _connections(self) -> dict[str, dict[str, object]]:
        # The test sources ask for no token, and there is no key to open: both are there so that tests can look for them
        # where no secret may be.
        return {
            "context_broker": _http(self.broker.url, {"X-Auth-Token": secrets.token_urlsafe(24)}),
            "registry": _http(self.registry.url, {"X-Auth-Token": secrets.token_urlsafe(24)}),
            "kafka_default": {"conn_type": "kafka", "extra": self._kafka_extra()},
            "spark_default": self._spark_connection(),
        }

    def _kafka_extra(self) -> dict[str, object]:
        return {**self.kafka.client_settings(), "ssl.key.password": secrets.token_urlsafe(24)}


def _http(url: str, headers: dict[str, str]) -> dict[str, object]:
    host, port = url.removeprefix("http://").split(":")
    return {"conn_type": "http", "host": host, "port": int(port), "schema": "http", "extra": {"headers": headers}}


def project_folder() -> Path:
    """The checkout that holds `dags/` and `plugins/`: the working folder, or the one this package lies in.

    Raises:
        ConfigurationError: neither is one.
    """
    for folder in (Path.cwd(), Path(__file__).resolve().parents[3]):
        if (folder / "dags" / "publications.py").is_file() and (folder / "plugins").is_dir():
            return folder
    raise ConfigurationError(
        "the sandbox needs Contexture's checkout (its dags/ and plugins/)",
        next_step="change to the folder that holds dags/ and plugins/, and run it there",
    )
