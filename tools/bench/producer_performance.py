"""Kafka's own program for measuring producers."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from contexture.java.runtime import find_java

_ANSWER = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec", re.MULTILINE)
_SECONDS = 600


@dataclass(frozen=True, slots=True)
class ProducerPerformance:
    """One way to call it.

    Attributes:
        jars: Kafka's jars with its tools.
        bootstrap_servers: the brokers.
        payloads: a file with a value in each line.
        properties: of its producer, besides lz4 and acks=all.
        transaction_milliseconds: how long each transaction lasts.
    """

    jars: Path
    bootstrap_servers: str
    payloads: Path
    properties: tuple[str, ...] = ()
    transaction_milliseconds: int = 500

    def records_per_second(self, topic: str, records: int) -> float:
        """Sends records and gives the rate it reports over all of them, from its first record to its last commit."""
        answer = subprocess.run(
            self._command(topic, records), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        found = [line for line in _ANSWER.findall(answer.stdout) if int(line[0]) == records]
        if answer.returncode or not found:
            raise RuntimeError(f"ProducerPerformance failed:\n{answer.stdout[-2000:]}{answer.stderr[-2000:]}")
        return float(found[-1][1])

    def _command(self, topic: str, records: int) -> list[str]:
        return [
            str(find_java().command),
            # What Kafka's own script gives it.
            "-Xmx512m",
            "-Dlog4j2.level=ERROR",
            *("-cp", f"{self.jars}/*", "org.apache.kafka.tools.ProducerPerformance"),
            *("--bootstrap-server", self.bootstrap_servers),
            *("--topic", topic),
            *("--num-records", str(records)),
            *("--payload-file", str(self.payloads)),
            *("--throughput", "-1"),
            *("--transaction-duration-ms", str(self.transaction_milliseconds)),
            *("--reporting-interval", "600000"),
            *("--command-property", "compression.type=lz4", "acks=all", *self.properties),
        ]
