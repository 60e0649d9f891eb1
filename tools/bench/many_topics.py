"""`topics`: few records for each of very many topics, against one producer that takes them as they come."""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime
from typing import Final

from contexture.kafka import ClientSettings, TopicSpec, ensure_topics, partition_for
from contexture.storage.home import Home
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.topic_order import group_by_topics, needs_groups
from contexture_sandbox.kafka import EmbeddedKafka
from tools.bench.loads import ENTITY_BYTES, values
from tools.bench.measures import Measure, Target, alternate
from tools.bench.outbox_files import PUBLICATION, TRANSACTION_RECORDS, Row, write_shards
from tools.bench.senders import Sender, Sent, bench_kafka
from tools.bench.settings import Setting

TOPICS_TARGET: Final = Target(4.0, at_least=True)
SHARDS: Final = 2
_SEED: Final = 7
MEBIBYTE: Final = 1 << 20


def topics(setting: Setting) -> list[Measure]:
    """Records a second to many topics, grouping them included, against record by record in random order."""
    measures = []
    with bench_kafka(setting) as kafka:
        for number in setting.sizes.topics:
            measures += _Spread(setting, kafka, number).measures()
    return measures


class _Spread:
    """One number of topics."""

    def __init__(self, setting: Setting, kafka: EmbeddedKafka, number: int) -> None:
        self._setting = setting
        self._kafka = kafka
        self._names = [f"city.parking{number}.spot{each:06d}" for each in range(number)]
        self._records = number * setting.sizes.topic_records
        self._home = setting.folder / f"home-{number}"
        self._sender = Sender(self._home, kafka)
        self._plain, self._grouped = f"plain-{number}", f"grouped-{number}"
        self._peaks: list[float] = []

    def measures(self) -> list[Measure]:
        """All rows of the table about it."""
        number, setting = f"{len(self._names):,}", self._setting
        setting.progress(f"writing {self._records:,} records for {number} topics, twice")
        making = self._make_topics()
        for outbox in (self._plain, self._grouped):
            # Records whose times are old would begin a second segment in each topic: twice the broker's open files.
            write_shards(self._home, outbox, self._shards(), moment=datetime.now(UTC))
        grouping = self._group()
        setting.progress(f"grouping took {grouping:.2f} s")
        setting.progress(f"warm-up: {self._records / self._ours().seconds:,.0f} records/s")
        self._peaks.clear()
        target = TOPICS_TARGET if len(self._names) == max(setting.sizes.topics) else None
        return [
            self._against("one producer, record by record in random order, in transactions", True, grouping, target),
            self._against("the same producer without transactions", False, grouping, None),
            Measure("topics", f"making {number} topics until all can be used", "s", (making,)),
            Measure("topics", f"peak memory of a sender, {number} topics", "MiB", tuple(self._peaks)),
        ]

    def _against(self, peer: str, transactional: bool, grouping: float, target: Target | None) -> Measure:
        self._setting.progress(f"against {peer}")
        ours, others = alternate(
            lambda: self._records / (self._ours().seconds + grouping),
            lambda: self._records / self._naive(transactional=transactional).seconds,
            self._setting.sizes.topic_pairs,
            self._setting.progress,
        )
        number, each = len(self._names), self._setting.sizes.topic_records
        what = f"{number:,} topics, {each} records each, {SHARDS} senders, grouping included"
        return Measure("topics", what, "records/s", ours, others, peer, target)

    def _make_topics(self) -> float:
        settings = ClientSettings.from_extra(self._kafka.client_settings())
        started = time.monotonic()
        ensure_topics(
            settings,
            [TopicSpec(name, 1, 1, keep="latest") for name in self._names],
            max_new_topics=len(self._names),
            max_broker_partitions=2 * len(self._names),
            progress=self._setting.progress,
        )
        return time.monotonic() - started

    def _shards(self) -> list[list[Row]]:
        """The same records for both sides, in random order over all topics; a key goes to its shard."""
        chosen = random.Random(_SEED)
        order = self._names * self._setting.sizes.topic_records
        chosen.shuffle(order)
        shards: list[list[Row]] = [[] for _ in range(SHARDS)]
        for name, value in zip(order, values(ENTITY_BYTES), strict=False):
            key = f'["city","/parking","{name}","ParkingSpot"]'.encode()
            shards[partition_for(key, SHARDS)].append((name, key, value))
        return shards

    def _group(self) -> float:
        """What prepare does for such an outbox at its end, here for one shard after the other."""
        names = [{topic for topic, _, _ in rows} for rows in self._shards()]
        outbox, started = Home(str(self._home)).publication(PUBLICATION).outbox(self._grouped), time.monotonic()
        for shard, topics_of_shard in enumerate(names):
            if needs_groups(topics_of_shard):
                folder = outbox.shard(shard)
                group_by_topics(folder, SHARD_FILE, topics_of_shard, transaction_records=TRANSACTION_RECORDS)
        return time.monotonic() - started

    def _ours(self) -> Sent:
        name = f"{self._grouped}-{time.monotonic_ns()}"
        sent = self._sender.send_outbox(self._grouped, name, shards=SHARDS)
        self._peaks.append(sent.peak_bytes / MEBIBYTE)
        return self._whole(sent)

    def _naive(self, *, transactional: bool) -> Sent:
        command = [sys.executable, "-m", "tools.bench.naive_sender", str(self._home), self._plain]
        ids = [f"naive-{time.monotonic_ns()}"] if transactional else []
        return self._whole(self._sender.run([[*command, self._kafka.bootstrap_servers, *ids]]))

    def _whole(self, sent: Sent) -> Sent:
        if sent.records != self._records:
            raise RuntimeError(f"{sent.records} of {self._records} records were sent")
        return sent
