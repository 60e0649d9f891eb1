"""`send` and `memory`: an outbox to committed records, by one sender on one broker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
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
# Our own producer's, for a peer that is not held back by defaults made for other purposes.
SAME_BATCHES = ("batch.size=1000000", "linger.ms=20", "buffer.memory=134217728")
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
        peers = {
            "Kafka's ProducerPerformance, batches as ours": (SAME_BATCHES, SEND_TARGET),
            "Kafka's ProducerPerformance, batches by default": ((), None),
        }
        setting.tell("warming the broker up")
        setting.tell(f"warm-up: {sender.records_per_second(records):,.0f} records/s")
        measures = []
        for against, (properties, target) in peers.items():
            peer = ProducerPerformance(tools, kafka.bootstrap_servers, payloads, properties)
            setting.tell(f"against {against}")
            ours, others = alternate(
                lambda: sender.records_per_second(records),
                partial(peer_rate, kafka, peer, records),
                setting.sizes.pairs,
                setting.tell,
            )
            what = f"one sender, {records:,} records of 300 bytes, Parquet reading included"
            measures.append(Measure("send", what, "records/s", ours, others, against, target))
    return measures


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
        sent = self.send_outbox(f"outbox{records}", f"bench-{next(self._numbers)}")
        if sent.records != records:
            raise RuntimeError(f"{sent.records} of {records} records were sent")
        return sent

    def send_outbox(self, outbox: str, name: str) -> Sent:
        """Sends an outbox of one shard, whose topics are there, as the sender of that name."""
        command = [sys.executable, "-m", "bench.sender", str(self.home), outbox, name]
        answer = subprocess.run(
            [*command, self.kafka.bootstrap_servers],
            stdout=subprocess.PIPE,
            text=True,
            timeout=_SEND_SECONDS,
            check=True,
        )
        return Sent(**json.loads(answer.stdout))


def peer_rate(kafka: EmbeddedKafka, peer: ProducerPerformance, records: int) -> float:
    """What the peer says of so many records to a fresh topic."""
    renew_topic(kafka)
    return peer.records_per_second(TOPIC, records)


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
