"""`send` and `memory`: an outbox to committed records, by senders on one broker."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from bench.loads import Load
from bench.measures import Measure, Target, alternate
from bench.outbox_files import TOPIC, write_outbox
from bench.producer_performance import ProducerPerformance
from bench.senders import Sender, bench_kafka, renew_topic
from bench.settings import Setting
from contexture.sandbox import jars
from contexture.sandbox.kafka import EmbeddedKafka

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
    cores = replace(plain, shards=os.cpu_count() or 1)
    with bench_kafka(setting) as kafka:
        setting.tell("fetching Kafka's tools (once on a machine)")
        jars.fetch(setting.tell, group="tools")
        trial = _Trial(setting, kafka)
        setting.tell(f"warm-up: {trial.written(plain).records_per_second(plain):,.0f} records/s")
        measures = [trial.against_peer(plain, AS_OURS, SAME_BATCHES, SEND_TARGET)]
        measures.append(trial.against_peer(plain, BY_DEFAULT, (), None))
        measures.append(trial.against_peer(replace(plain, headers=HEADERS), AS_OURS, SAME_BATCHES, HEADERS_TARGET))
        for value_bytes, fewer in ((2_000, 4), (100_000, 100)):
            load = Load(plain.records // fewer, value_bytes)
            measures.append(trial.against_peer(load, AS_OURS, SAME_BATCHES, SEND_TARGET))
        measures.append(trial.against_peer(cores, AS_OURS, SAME_BATCHES, CORES_TARGET))
        measures.append(trial.against_one(replace(plain, shards=2), plain))
    return measures


def memory(setting: Setting) -> list[Measure]:
    """Peak memory of a sender with many records, against one with few."""
    few, many = (Load(records) for records in setting.sizes.memory_records)
    with bench_kafka(setting) as kafka:
        sender = Sender(setting.folder / "home", kafka)
        for load in (few, many):
            setting.tell(f"writing an outbox of {load.described()}")
            write_outbox(sender.home, load)
        ours, others = alternate(
            lambda: sender.send(many).peak_bytes / MEBIBYTE,
            lambda: sender.send(few).peak_bytes / MEBIBYTE,
            setting.sizes.pairs,
            setting.tell,
        )
    what = f"peak memory of a sender with {many.records:,} records"
    return [Measure("memory", what, "MiB", ours, others, f"the same with {few.records:,} records", MEMORY_TARGET)]


class _Trial:
    """Loads sent by us and by others."""

    def __init__(self, setting: Setting, kafka: EmbeddedKafka) -> None:
        self._setting = setting
        self._kafka = kafka
        self._sender = Sender(setting.folder / "home", kafka)
        self._written: set[Load] = set()

    def written(self, load: Load) -> Sender:
        """The sender, once the load's outbox is there."""
        if load not in self._written:
            self._setting.tell(f"writing an outbox of {load.described()}")
            write_outbox(self._sender.home, load)
            self._written.add(load)
        return self._sender

    def against_peer(self, load: Load, against: str, properties: tuple[str, ...], target: Target | None) -> Measure:
        """Our rate against that of Kafka's own program, which is given values alone."""
        sender = self.written(load)
        payloads = self._setting.folder / f"payloads-{load.value_bytes}.txt"
        if not payloads.exists():
            load.payloads(payloads)
        tools = jars.fetch(self._setting.tell, group="tools")
        peer = ProducerPerformance(tools, self._kafka.bootstrap_servers, payloads, properties)
        self._setting.tell(f"{_senders(load)}, {load.described()}, against {against}")
        ours, others = alternate(
            lambda: sender.records_per_second(load),
            partial(_peer_rate, self._kafka, peer, load.records),
            self._setting.sizes.pairs,
            self._setting.tell,
        )
        what = f"{_senders(load)}, {load.described()}, Parquet reading included"
        return Measure("send", what, "records/s", ours, others, against, target)

    def against_one(self, load: Load, single: Load) -> Measure:
        """Several senders' rate against one's."""
        sender = self.written(load)
        self.written(single)
        self._setting.tell(f"{_senders(load)} against {_senders(single)}")
        ours, others = alternate(
            lambda: sender.records_per_second(load),
            lambda: sender.records_per_second(single),
            self._setting.sizes.pairs,
            self._setting.tell,
        )
        return Measure("send", f"{_senders(load)}, {load.described()}", "records/s", ours, others, "one sender of ours")


def _senders(load: Load) -> str:
    return "one sender" if load.shards == 1 else f"{load.shards} senders"


def _peer_rate(kafka: EmbeddedKafka, peer: ProducerPerformance, records: int) -> float:
    """What the peer says of so many records to a fresh topic."""
    renew_topic(kafka)
    return peer.records_per_second(TOPIC, records)
