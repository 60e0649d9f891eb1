"""One Kafka node (broker and controller in one JVM): its files, its process."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from contexture.java.runtime import Java
from contexture_sandbox.listeners import Ports, Security, listener_properties
from contexture_sandbox.ports import LOOPBACK
from contexture_sandbox.processes import ChildProcess, ProcessOptions

_GRACE_SECONDS = 20.0
_REASON = re.compile(r"^\S+ (ERROR|FATAL) |^(Caused by: )?[\w.$]+(Exception|Error): ")
_MOST_REASONS = 8

# To standard output, which the process writes to the node's log file together with what the JVM itself says.
# Log4j's own shutdown hook would silence the broker while it closes its data.
_LOG4J = """shutdownHook = disable
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p [%t] %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What all nodes of a cluster share.

    Attributes:
        quorum: the controllers, in Kafka's form `1@host:port,…`.
        brokers: how many nodes there are.
        security: how clients reach them.
        broker_config: settings that win over the sandbox's own.
        heap: the JVM's largest heap, as `-Xmx` takes it.
        jvm_options: further options of the JVM.
    """

    quorum: str
    brokers: int
    security: Security
    broker_config: Mapping[str, str] = field(default_factory=dict)
    heap: str = "512m"
    jvm_options: tuple[str, ...] = ()


@dataclass(slots=True)
class Node:
    """A node with its folder: `data`, `tmp`, `server.properties`, `log4j2.properties` and `broker.log`."""

    number: int
    folder: Path
    ports: Ports
    options: ClusterOptions
    process: ChildProcess | None = None

    @property
    def data(self) -> Path:
        """Where the records are."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The broker's log."""
        return self.folder / "broker.log"

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.running

    def start(self, java: Java, jars: Path, *, temporary: Path | None) -> None:
        """Starts the JVM; the broker is not ready yet.

        `temporary` is a folder to remove when the owner dies.
        """
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        _write_properties(self.folder / "server.properties", self._properties())
        (self.folder / "log4j2.properties").write_text(_LOG4J)
        options = ProcessOptions(
            log=self.log,
            environment={**os.environ, **java.environment()},
            folder=self.folder,
            grace_seconds=_GRACE_SECONDS,
            remove=(temporary,) if temporary else (),
        )
        self.process = ChildProcess(self._command(java, jars), options)

    def request_end(self) -> None:
        """Asks the broker to end in good order."""
        if self.process is not None:
            self.process.signal(signal.SIGTERM)

    def await_end(self) -> None:
        """Waits until it has ended; kills it after the grace time."""
        if self.process is not None:
            self.process.terminate()

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of its log."""
        return self.process.log_tail(lines) if self.process is not None else ""

    def reasons(self) -> str:
        """What its log gives as the reason for ending: errors and their causes, else the last lines."""
        lines = [line for line in self.log_tail(1000).splitlines() if _REASON.search(line)]
        return "\n".join(lines[-_MOST_REASONS:]) or self.log_tail()

    def _command(self, java: Java, jars: Path) -> list[str]:
        return [
            str(java.command),
            f"-Xmx{self.options.heap}",
            # Every thread that once read or wrote a record keeps a buffer of its size outside the heap: without a limit
            # of its own that is the heap's, and a second record of 190 MB is never taken.
            "-XX:MaxDirectMemorySize=2g",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-XX:+ExitOnOutOfMemoryError",
            # Otherwise Java's sockets are IPv6 ones that take IPv4 too.
            "-Djava.net.preferIPv4Stack=true",
            # Compression libraries unpack themselves here; a killed broker would leave them in the system's folder.
            f"-Djava.io.tmpdir={self.folder / 'tmp'}",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            *self.options.security.jvm_options(),
            *self.options.jvm_options,
            *("-cp", f"{jars}/*", "kafka.Kafka", str(self.folder / "server.properties")),
        ]

    def _properties(self) -> dict[str, str]:
        options, copies = self.options, min(3, self.options.brokers)
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.number),
            "controller.quorum.voters": options.quorum,
            "log.dirs": str(self.data),
            **listener_properties(self.ports, options.security.protocol),
            **options.security.broker_properties(self.folder.parent / "certificates" / "broker.pem"),
            **_sizes(copies),
            **options.broker_config,
        }


def quorum(ports: Mapping[int, Ports]) -> str:
    """Kafka's list of controllers for nodes with these ports."""
    return ",".join(f"{number}@{LOOPBACK}:{node.controller}" for number, node in ports.items())


def _sizes(copies: int) -> dict[str, str]:
    """Replication for `copies` nodes; limits wide enough for every test; a small footprint."""
    return {
        "auto.create.topics.enable": "false",
        "default.replication.factor": str(copies),
        "offsets.topic.replication.factor": str(copies),
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(max(1, copies - 1)),
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(max(1, copies - 1)),
        "group.initial.rebalance.delay.ms": "0",
        # A killed broker that starts again is let in only when its old session is over; Kafka's own 9 s are long.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "message.max.bytes": "209715200",
        "socket.request.max.bytes": "250000000",
        "log.cleaner.dedupe.buffer.size": "16777216",
        # Kafka's own is 10 MB for each of a segment's two indexes. The first entry of one makes the kernel read ahead,
        # holes and all: where read-ahead is set to 8 MB, that takes 7.6 ms each, 15 s for a thousand topics.
        "log.index.size.max.bytes": "131072",
        "num.network.threads": "2",
        "num.io.threads": "4",
    }


def _write_properties(file: Path, properties: Mapping[str, str]) -> None:
    # Java's format: a backslash starts an escape.
    lines = [f"{name}={value}".replace("\\", "\\\\") for name, value in properties.items()]
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o600)
