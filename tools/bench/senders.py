"""Our senders, as processes of their own, and the broker and the topic that they send to."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

from confluent_kafka.admin import AdminClient

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture_sandbox.kafka import EmbeddedKafka
from tools.bench.loads import Load
from tools.bench.outbox_files import TOPIC
from tools.bench.settings import Setting

PARTITIONS = 4
_DELETE_SECONDS = 60.0
_END_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Sent:
    """What senders beside each other did.

    Attributes:
        records: of all.
        seconds: from the moment at which all were ready to the last one's end.
        peak_bytes: the largest resident memory of one.
        processor_seconds: of all, from that moment on; 0 for programs that do not report them.
    """

    records: int
    seconds: float
    peak_bytes: int
    processor_seconds: float = 0.0


@dataclass(slots=True)
class Sender:
    """Starts our senders, each time as a publication that has never sent before.

    Attributes:
        home: of the outboxes.
        kafka: what they send to.
        copies: of the topic that is made for a load.
    """

    home: Path | str
    kafka: EmbeddedKafka
    copies: int = 1
    _numbers: Iterator[int] = field(default_factory=count)

    def records_per_second(self, load: Load) -> float:
        """The rate from the first call to the broker to the last commit."""
        sent = self.send(load)
        return sent.records / sent.seconds

    def send(self, load: Load) -> Sent:
        """Sends a load's outbox to a fresh topic, with a sender for each shard."""
        renew_topic(self.kafka, self.copies)
        sent = self.send_outbox(load.outbox, f"bench-{next(self._numbers)}", shards=load.shards)
        if sent.records != load.records:
            raise RuntimeError(f"{sent.records} of {load.records} records were sent")
        return sent

    def send_outbox(self, outbox: str, name: str, *, shards: int = 1) -> Sent:
        """Sends an outbox whose topics are there, as the senders of that publication."""
        command = [sys.executable, "-m", "tools.bench.sender", str(self.home), outbox]
        return self.run([[*command, str(shard), name, self.kafka.bootstrap_servers] for shard in range(shards)])

    def run(self, commands: Sequence[Sequence[str]]) -> Sent:
        """Runs programs beside each other that say when they are ready and what they did."""
        processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for command in commands
        ]
        try:
            for process in processes:
                _line(process)
            started = time.monotonic()
            for process in processes:
                _pipe(process.stdin).write("go\n")
                _pipe(process.stdin).flush()
            answers = [json.loads(_line(process)) for process in processes]
            seconds = time.monotonic() - started
        finally:
            _end(processes)
        records = sum(answer["records"] for answer in answers)
        processor_seconds = sum(answer.get("processor_seconds", 0.0) for answer in answers)
        return Sent(records, seconds, max(answer["peak_bytes"] for answer in answers), processor_seconds)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # asked for above
    return pipe


def _line(process: subprocess.Popen[str]) -> str:
    line = _pipe(process.stdout).readline()
    if not line:
        raise RuntimeError(f"a sender ended with {process.wait()}")
    return line


def _end(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        for pipe in (process.stdin, process.stdout):
            _pipe(pipe).close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def bench_kafka(setting: Setting, brokers: int = 1) -> Iterator[EmbeddedKafka]:
    """The brokers both sides send to, one or three; the JVM compiles as it would in production."""
    setting.progress("starting Kafka")
    # The sandbox's quick compiler is for short lives; later options win.
    options = ("-XX:TieredStopAtLevel=4", "-XX:+UseG1GC", "-XX:-UseSerialGC")
    # Kafka's own; the sandbox's is for brokers that are killed, and too short for one that makes thousands of topics.
    config = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}
    with EmbeddedKafka(
        brokers, heap="1g", jvm_options=options, broker_config=config, progress=setting.progress
    ) as kafka:
        yield kafka


def renew_topic(kafka: EmbeddedKafka, copies: int = 1) -> None:
    """An empty topic."""
    settings = ClientSettings.from_extra(kafka.client_settings())
    admin = AdminClient(settings.admin())
    deadline = time.monotonic() + _DELETE_SECONDS
    if TOPIC in admin.list_topics(timeout=10).topics:
        admin.delete_topics([TOPIC])[TOPIC].result()
    while TOPIC in admin.list_topics(timeout=10).topics:
        if time.monotonic() > deadline:
            raise RuntimeError(f"topic {TOPIC} was not deleted")
        time.sleep(0.1)
    ensure_topics(settings, [TopicSpec(TOPIC, PARTITIONS, copies, {"file.delete.delay.ms": "1000"})])
