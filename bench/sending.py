"""`send` and `memory`: an outbox to committed records, by one sender on one broker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench.measures import Measure, Target, alternate
from bench.outbox_files import TOPIC, write_outbox, write_payloads
from bench.producer_performance import ProducerPerformance
from bench.settings import Setting
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture.sandbox import jars
from contexture.sandbox.kafka import EmbeddedKafka

PARTITIONS = 4
PAYLOADS = 100_000
SEND_TARGET = Target(0.6, at_least=True)
MEMORY_TARGET = Target(1.25, at_least=False)
MEBIBYTE = 1 << 20
_DELETE_SECONDS = 60.0
_SEND_SECONDS = 600


def send(setting: Setting) -> list[Measure]:
    """Records a second from an outbox on disk to committed, against Kafka's ProducerPerformance."""
    records = setting.sizes.sent_records
    with bench_kafka(setting) as kafka:
        setting.tell("fetching Kafka's tools (once on a machine)")
        tools = jars.fetch(setting.tell, group="tools")
        setting.tell(f"writing an outbox of {records:,} records")
        sender = Sender(setting.folder / "home", kafka)
        write_outbox(sender.home, records)
        payloads = setting.folder / "payloads.txt"
        write_payloads(payloads, min(records, PAYLOADS))
        peer = ProducerPerformance(tools, kafka.bootstrap_servers, payloads)

        def theirs() -> float:
            renew_topic(kafka)
            return peer.records_per_second(TOPIC, records)

        setting.tell("warming the broker up")
        peer_first, ours_first = theirs(), sender.records_per_second(records)
        setting.tell(f"warm-up: ours {ours_first:,.0f}, peer {peer_first:,.0f} records/s")
        ours, others = alternate(lambda: sender.records_per_second(records), theirs, setting.sizes.pairs, setting.tell)
    what = f"one sender, {records:,} records of 300 bytes, Parquet reading included"
    return [Measure("send", what, "records/s", ours, others, "Kafka's ProducerPerformance", SEND_TARGET)]


def memory(setting: Setting) -> list[Measure]:
    """Peak memory of a sender with many records, against one with few."""
    few, many = setting.sizes.memory_records
    with bench_kafka(setting) as kafka:
        sender = Sender(setting.folder / "home", kafka)
        for records in (few, many):
            setting.tell(f"writing an outbox of {records:,} records")
            write_outbox(sender.home, records)
        ours, others = alternate(
            lambda: sender.send(many).peak_bytes / MEBIBYTE,
            lambda: sender.send(few).peak_bytes / MEBIBYTE,
            setting.sizes.pairs,
            setting.tell,
        )
    what = f"peak memory of a sender with {many:,} records"
    return [Measure("memory", what, "MiB", ours, others, f"the same with {few:,} records", MEMORY_TARGET)]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a sender said."""

    records: int
    seconds: float
    peak_bytes: int


@dataclass(slots=True)
class Sender:
    """Starts our senders, each as a publication that has never sent before."""

    home: Path
    kafka: EmbeddedKafka
    _numbers: Iterator[int] = field(default_factory=count)

    def records_per_second(self, records: int) -> float:
        """The rate from the first call to the broker to the last commit."""
        sent = self.send(records)
        return sent.records / sent.seconds

    def send(self, records: int) -> Sent:
        """Sends the outbox with so many records to a fresh topic."""
        renew_topic(self.kafka)
        name = f"bench-{next(self._numbers)}"
        command = [sys.executable, "-m", "bench.sender", str(self.home), f"outbox{records}", name]
        answer = subprocess.run(
            [*command, self.kafka.bootstrap_servers],
            stdout=subprocess.PIPE,
            text=True,
            timeout=_SEND_SECONDS,
            check=True,
        )
        sent = Sent(**json.loads(answer.stdout))
        if sent.records != records:
            raise RuntimeError(f"{sent.records} of {records} records were sent")
        return sent


@contextmanager
def bench_kafka(setting: Setting) -> Iterator[EmbeddedKafka]:
    """The broker both sides send to; the JVM compiles as it would in production."""
    setting.tell("starting Kafka")
    # The sandbox's quick compiler is for short lives; later options win.
    options = ("-XX:TieredStopAtLevel=4", "-XX:+UseG1GC", "-XX:-UseSerialGC")
    with EmbeddedKafka(heap="1g", jvm_options=options, progress=setting.tell) as kafka:
        yield kafka


def renew_topic(kafka: EmbeddedKafka) -> None:
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
    ensure_topics(settings, [TopicSpec(TOPIC, PARTITIONS, 1, {"file.delete.delay.ms": "1000"})])
