"""What brokers cost: processor time and disk by records and copies, open files by partitions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Producer

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics
from contexture_sandbox.kafka import EmbeddedKafka
from tools.bench.engines.accounting import ProcessorTime, mapped_files, open_files
from tools.bench.engines.spark import BENCH
from tools.bench.loads import Load
from tools.bench.measures import Measure, alternate
from tools.bench.outbox_files import TOPIC, TRANSACTION_RECORDS, write_outbox
from tools.bench.senders import Sender, Sent, bench_kafka
from tools.bench.settings import Setting

LEDGER = "contexture.ledger."
MILLION = 1_000_000
_BROKERS = "brokers"


def kafka(setting: Setting) -> list[Measure]:
    """One broker without copies against three with three of each, and two senders against one."""
    one, two = Load(setting.sizes.engine_records), Load(setting.sizes.engine_records, shards=2)
    home = setting.folder / "home"
    for load in (one, two):
        setting.progress(f"writing an outbox of {load.described()} in {load.shards} shards")
        write_outbox(home, load)
    with bench_kafka(setting) as single, bench_kafka(setting, brokers=3) as triple:
        alone, copied = (
            _Brokers(setting, Sender(home, each, copies), each) for each, copies in ((single, 1), (triple, 3))
        )
        for brokers in (alone, copied):
            setting.progress(f"warm-up: {brokers.rate(one):,.0f} records/s")
            brokers.sent.clear()
        rows = [*_scaling(setting, alone, copied, one, two), *copied.costs_against(alone, one)]
        return [*rows, *alone.of_partitions()]


def _scaling(setting: Setting, alone: _Brokers, copied: _Brokers, one: Load, two: Load) -> list[Measure]:
    copies = f"Kafka: one sender, {one.described()}, three brokers, three copies"
    senders = f"Kafka: 2 senders, {two.described()}"
    rows = []
    for what, ours, peer, against in (
        (copies, partial(copied.rate, one), partial(alone.rate, one), "one broker, one copy"),
        (f"{senders}, one broker", partial(alone.rate, two), partial(alone.rate, one), "one sender"),
        (f"{senders}, three brokers, three copies", partial(copied.rate, two), partial(copied.rate, one), "one sender"),
    ):
        setting.progress(f"{what}, against {against}")
        rows.append(
            Measure(
                BENCH, what, "records/s", *alternate(ours, peer, setting.sizes.engine_pairs, setting.progress), against
            )
        )
    return rows


class _Sending:
    """One sending: what senders and brokers spent on it, and what it left on the disks."""

    def __init__(self, sent: Sent, brokers_seconds: float, disk: dict[str, int]) -> None:
        self.sender_seconds = sent.processor_seconds / sent.records * MILLION
        self.brokers_seconds = brokers_seconds / sent.records * MILLION
        self.record_bytes = disk[TOPIC] / sent.records
        self.ledger_bytes = disk[LEDGER] / (sent.records / TRANSACTION_RECORDS)


class _Brokers:
    """One cluster and what was sent to it, by load."""

    def __init__(self, setting: Setting, sender: Sender, running: EmbeddedKafka) -> None:
        self._setting = setting
        self._sender = sender
        self._kafka = running
        self.sent: dict[Load, list[_Sending]] = {}

    def rate(self, load: Load) -> float:
        """Records a second."""
        before = log_bytes(self._kafka.folder)
        books = ProcessorTime({_BROKERS: self._kafka.process_ids})
        sent = self._sender.send(load)
        after = log_bytes(self._kafka.folder)
        # The topic is a new one each time; ledgers are each sender's own.
        disk = {TOPIC: after[TOPIC], LEDGER: after[LEDGER] - before[LEDGER]}
        self.sent.setdefault(load, []).append(_Sending(sent, books.seconds()[_BROKERS], disk))
        return sent.records / sent.seconds

    def costs_against(self, alone: _Brokers, load: Load) -> list[Measure]:
        """What a million records cost here, against there."""
        million = "a million records of 300 bytes, one sender"
        figures: tuple[tuple[str, str, Callable[[_Sending], float]], ...] = (
            (f"processor time of all brokers, {million}", "s", lambda sending: sending.brokers_seconds),
            (f"processor time of the sender, {million}", "s", lambda sending: sending.sender_seconds),
            ("disk of all brokers for a record of 300 bytes", "bytes", lambda sending: sending.record_bytes),
            ("disk of all brokers for the ledger, a transaction", "bytes", lambda sending: sending.ledger_bytes),
        )
        rows = []
        for what, unit, figure in figures:
            ours, peer = (tuple(map(figure, each.sent[load])) for each in (self, alone))
            title = f"Kafka: {what}, three brokers, three copies"
            size = min(len(ours), len(peer))
            rows.append(Measure(BENCH, title, unit, ours[:size], peer[:size], "one broker, one copy"))
        return rows

    def of_partitions(self) -> list[Measure]:
        """What a broker opens for each partition that holds a record."""
        number = self._setting.sizes.engine_topics
        self._setting.progress(f"making {number:,} topics of one partition")
        before = self._opened()
        names = [f"engines.partition{each:05d}" for each in range(number)]
        settings = ClientSettings.from_extra(self._kafka.client_settings())
        ensure_topics(settings, [TopicSpec(name, 1, 1) for name in names])
        producer = Producer(settings.producer())
        for name in names:
            producer.produce(name, b"one")
        producer.flush(60)
        files, maps = (after - then for after, then in zip(self._opened(), before, strict=True))
        return [
            Measure(BENCH, "Kafka: open files of a broker for each partition it holds", "files", (files / number,)),
            Measure(BENCH, "Kafka: mapped files of a broker for each partition it holds", "files", (maps / number,)),
        ]

    def _opened(self) -> tuple[int, int]:
        (broker,) = self._kafka.process_ids
        return open_files(broker), mapped_files(broker, "index")


def log_bytes(folder: Path) -> dict[str, int]:
    """Bytes of the records on all brokers' disks, indexes left out: of the bench's topic and of all ledgers."""
    found = {TOPIC: 0, LEDGER: 0}
    for log in folder.glob("node-*/data/*/*.log"):
        name = log.parent.name
        for beginning in found:
            if name.startswith(beginning) and not name.endswith("-delete"):
                found[beginning] += log.stat().st_size
    return found
