"""A real Kafka on this machine, for the demo, the tests and the bench."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from contexture.errors import ConfigurationError
from contexture.java.runtime import find_java
from contexture_sandbox import jars, maven, readiness, storage
from contexture_sandbox.certificates import write_certificates
from contexture_sandbox.listeners import Ports, Security
from contexture_sandbox.node import ClusterOptions, Node, quorum
from contexture_sandbox.ports import LOOPBACK, free_ports


class EmbeddedKafka:
    """A Kafka cluster of one or three brokers on 127.0.0.1; a context manager that starts and ends it.

        with EmbeddedKafka() as kafka:
            producer = Producer(kafka.client_settings())

    Whatever way the owning process ends, the brokers end with it and a temporary data folder is removed. Stopped or
    killed brokers can be started again on the same ports with the same data.

    Attributes:
        folder: where data and logs are.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        security: Security | None = None,
        broker_config: Mapping[str, str] | None = None,
        data_folder: Path | None = None,
        ports: Iterable[int] = (),
        heap: str = "512m",
        jvm_options: tuple[str, ...] = (),
        start_timeout_seconds: float = 240.0,
        progress: maven.Progress | None = None,
    ) -> None:
        """Prepares a cluster; nothing runs before `start` or the `with` block.

        Args:
            brokers: 1 or 3.
            security: how clients connect; plain text without users when None.
            broker_config: settings in Kafka's names that win over the sandbox's.
            data_folder: kept afterwards, and used as it is when it holds a cluster's data already; a temporary
                folder when None.
            ports: the clients' ports, one for each broker; free ones when empty.
            heap: the largest heap of each broker.
            jvm_options: further JVM options of each broker.
            start_timeout_seconds: how long a start may take.
            progress: gets a line for each jar that a first start fetches.

        Raises:
            ConfigurationError: not 1 or 3 brokers, or another number of ports.
        """
        if brokers not in (1, 3):
            raise ConfigurationError(f"{brokers} embedded Kafka brokers", next_step="ask for 1 or 3 brokers")
        self._security = security or Security()
        self._temporary = data_folder is None
        self._timeout_seconds = start_timeout_seconds
        self._progress = progress
        self.folder = data_folder.resolve() if data_folder else Path(tempfile.mkdtemp(prefix="contexture-kafka-"))
        node_ports = _node_ports(brokers, tuple(ports))
        options = ClusterOptions(
            quorum(node_ports), brokers, self._security, dict(broker_config or {}), heap, jvm_options
        )
        self._nodes = [
            Node(number, self.folder / f"node-{number}", node_ports[number], options) for number in node_ports
        ]

    @property
    def bootstrap_servers(self) -> str:
        """What clients connect to, `host:port,…`."""
        return ",".join(f"{LOOPBACK}:{node.ports.client}" for node in self._nodes)

    @property
    def internal_servers(self) -> str:
        """The same brokers in plain text without a login (as ANONYMOUS), for tests of secured clusters."""
        return ",".join(f"{LOOPBACK}:{node.ports.internal}" for node in self._nodes)

    @property
    def certificates(self) -> Path:
        """The folder with `ca.pem`, `broker.pem` and `client.pem` of a TLS cluster."""
        return self.folder / "certificates"

    @property
    def running(self) -> tuple[bool, ...]:
        """For each broker, whether its process runs."""
        return tuple(node.running for node in self._nodes)

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The process ids of the running brokers."""
        return tuple(node.process.pid for node in self._nodes if node.process is not None and node.running)

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """What a librdkafka client needs to connect (as `user`, when clients log in)."""
        return {"bootstrap.servers": self.bootstrap_servers} | self._security.client_settings(self.certificates, user)

    def log_tail(self, broker: int = 0, lines: int = 20) -> str:
        """The last lines of a broker's log."""
        return self._nodes[broker].log_tail(lines)

    def start(self) -> None:
        """Starts every broker that does not run and waits until all answer; fetches Kafka on a machine's first use.

        Raises:
            ConfigurationError: no usable Java, Kafka's jars are not the pinned ones, or a broker died; its last log
                lines are in the message.
            RetriableError: Kafka could not be fetched, or did not answer in time.
        """
        runtime = find_java()
        libraries = jars.fetch(self._progress)
        new = self._format(storage.checkpoint_template(runtime, libraries))
        for node in self._nodes:
            if not node.running:
                node.start(runtime, libraries, temporary=self.folder if self._temporary else None)
        readiness.await_brokers(self._nodes, self._timeout_seconds)
        if new and self._security.sasl:
            readiness.add_users(self.internal_servers, self._security.users, self._security.mechanisms)
        # Only the login is awaited, because tests may give the brokers certificates that no client trusts.
        unchecked = {"enable.ssl.certificate.verification": "false"} if self._security.tls else {}
        cluster = storage.cluster_id(self._nodes[0].data)
        login = {**self.client_settings(), **unchecked}
        readiness.await_login(self._nodes, login, self._timeout_seconds, cluster=cluster)

    def stop(self, broker: int | None = None) -> None:
        """Ends one broker or all in good order (SIGTERM) and waits until they are gone."""
        for node in self._chosen(broker):
            node.request_end()
        for node in self._chosen(broker):
            node.await_end()

    def kill(self, broker: int = 0) -> None:
        """Kills one broker (SIGKILL)."""
        process = self._nodes[broker].process
        if process is not None:
            process.kill()

    def restart(self) -> None:
        """Stops and starts all brokers, on the same ports with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Ends all brokers; removes a temporary data folder."""
        if not self._temporary:
            self.stop()
            return
        # No client reads these records again, so a clean shutdown is not needed.
        for number in range(len(self._nodes)):
            self.kill(number)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> EmbeddedKafka:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _chosen(self, broker: int | None) -> list[Node]:
        return self._nodes if broker is None else [self._nodes[broker]]

    def _format(self, template: Path) -> bool:
        """Makes the data folders that are not there yet; whether the cluster is new."""
        formatted = [node for node in self._nodes if storage.is_formatted(node.data)]
        cluster = storage.cluster_id(formatted[0].data) if formatted else storage.random_id()
        for node in self._nodes:
            if node not in formatted:
                storage.format_folder(node.data, cluster=cluster, node=node.number, template=template)
        if self._security.tls:
            write_certificates(self.certificates)
        return not formatted


def _node_ports(brokers: int, chosen: tuple[int, ...]) -> dict[int, Ports]:
    if chosen and len(chosen) != brokers:
        raise ConfigurationError(
            f"{len(chosen)} ports for {brokers} brokers", next_step="give one port for each broker, or none"
        )
    free = free_ports(3 * brokers)
    clients = chosen or free[:brokers]
    return {
        number + 1: Ports(client, free[brokers + 2 * number], free[brokers + 2 * number + 1])
        for number, client in enumerate(clients)
    }
