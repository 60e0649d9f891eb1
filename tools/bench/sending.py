"""`send` and `memory`: an outbox to committed records, by senders on one broker."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from contexture_sandbox import jars
from contexture_sandbox.kafka import EmbeddedKafka
from tools.bench.loads import Load
from tools.bench.measures import Measure, Target, alternate
from tools.bench.outbox_files import TOPIC, write_outbox
from tools.bench.producer_performance import ProducerPerformance
from tools.bench.senders import Sender, bench_kafka, renew_topic
from tools.bench.settings import Setting

SEND_TARGET = Target(0.7, at_least=True)
HEADERS_TARGET = Target(0.5, at_least=True)
CORES_TARGET = Target(0.85, at_least=True)
MEMORY_TARGET = Target(1.25, at_least=False)
HEADERS = 5
MEBIBYTE = 1 << 20
# Our own producer's, for a peer that is not held back by defaults made for other purposes.
SAME_BATCHES = ("batch.size=1000000", "linger.ms=20", "buffer.memory=134217728")
AS_OURS = "Kafka's ProducerPerformance, batches as ours"
BY_DEFAULT = "Kafka's ProducerPerformance, batches by default"


def send(setting: Setting) -> list[Measure]:
    """Records a second from an outbox on disk to committed, against Kafka's ProducerPerformance."""
    plain = Load(setting.sizes.sent_records)
    headed = replace(plain, headers=HEADERS)
    large = [Load(plain.records // fewer, value_bytes) for value_bytes, fewer in setting.sizes.large_values]
    cores, two = replace(plain, shards=os.cpu_count() or 1), replace(plain, shards=2)
    with bench_kafka(setting) as kafka:
        setting.progress("fetching Kafka's tools (once on a machine)")
        jars.fetch(setting.progress, group="tools")
        trial = _Trial(setting, kafka)
        for load in dict.fromkeys((plain, headed, cores, two, *large)):
            trial.write(load)
        setting.progress(f"warm-up: {trial.sender.records_per_second(plain):,.0f} records/s")
        return [
            trial.against_peer(plain, AS_OURS, SAME_BATCHES, SEND_TARGET),
            trial.against_peer(headed, AS_OURS, SAME_BATCHES, HEADERS_TARGET),
            trial.against_peer(cores, AS_OURS, SAME_BATCHES, CORES_TARGET),
            *(trial.against_peer(load, AS_OURS, SAME_BATCHES, SEND_TARGET) for load in large),
            trial.against_one(two, plain),
            trial.against_peer(plain, BY_DEFAULT, (), None),
        ]


def memory(setting: Setting) -> list[Measure]:
    """Peak memory of a sender with many records, against one with few."""
    few, many = (Load(records) for records in setting.sizes.memory_records)
    with bench_kafka(setting) as kafka:
        sender = Sender(setting.folder / "home", kafka)
        for load in (few, many):
            setting.progress(f"writing an outbox of {load.described()}")
            write_outbox(sender.home, load)
        ours, others = alternate(
            lambda: sender.send(many).peak_bytes / MEBIBYTE,
            lambda: sender.send(few).peak_bytes / MEBIBYTE,
            setting.sizes.pairs,
            setting.progress,
        )
    what = f"peak memory of a sender with {many.records:,} records"
    return [Measure("memory", what, "MiB", ours, others, f"the same with {few.records:,} records", MEMORY_TARGET)]


class _Trial:
    """Loads sent by us and by others."""

    def __init__(self, setting: Setting, kafka: EmbeddedKafka) -> None:
        self._setting = setting
        self._kafka = kafka
        self.sender = Sender(setting.folder / "home", kafka)

    def write(self, load: Load) -> None:
        """Writes a load's outbox, and the values that Kafka's program gets."""
        self._setting.progress(f"writing an outbox of {load.described()} in {load.shards} shards")
        write_outbox(self.sender.home, load)
        load.payloads(self._payloads(load))

    def against_peer(self, load: Load, against: str, properties: tuple[str, ...], target: Target | None) -> Measure:
        """Our rate against that of Kafka's own program, which is given values alone."""
        tools = jars.fetch(self._setting.progress, group="tools")
        peer = ProducerPerformance(tools, self._kafka.bootstrap_servers, self._payloads(load), properties)
        self._setting.progress(f"{_senders(load)}, {load.described()}, against {against}")
        ours, others = alternate(
            lambda: self.sender.records_per_second(load),
            partial(_peer_rate, self._kafka, peer, load.records),
            self._setting.sizes.pairs,
            self._setting.progress,
        )
        what = f"{_senders(load)}, {load.described()}, Parquet reading included"
        return Measure("send", what, "records/s", ours, others, against, target)

    def against_one(self, load: Load, single: Load) -> Measure:
        """Several senders' rate against one's."""
        self._setting.progress(f"{_senders(load)} against {_senders(single)}")
        ours, others = alternate(
            lambda: self.sender.records_per_second(load),
            lambda: self.sender.records_per_second(single),
            self._setting.sizes.pairs,
            self._setting.progress,
        )
        return Measure("send", f"{_senders(load)}, {load.described()}", "records/s", ours, others, "one sender of ours")

    def _payloads(self, load: Load) -> Path:
        return self._setting.folder / f"payloads-{load.value_bytes}.txt"


def _senders(load: Load) -> str:
    return "one sender" if load.shards == 1 else f"{load.shards} senders"


def _peer_rate(kafka: EmbeddedKafka, peer: ProducerPerformance, records: int) -> float:
    """What the peer says of so many records to a fresh topic."""
    renew_topic(kafka)
    return peer.records_per_second(TOPIC, records)
