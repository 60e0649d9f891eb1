"""A sender that can be killed: sends one shard and says on standard output when it is inside a transaction.

Run as `python sender_process.py BOOTSTRAP PUBLICATION SHARD SHARDS TOPIC RECORDS TRANSACTION_RECORDS PAUSE_SECONDS
DWELLS_FROM`.
"""

from __future__ import annotations

import os
import sys
import time

from contexture.kafka import ClientSettings
from contexture.kafka.clients import transactional_producer
from contexture.sending import Publisher, SenderNames
from contexture.sending.testing import MemoryShard, OutboxRow


class WithoutPandas:
    """pyarrow would import pandas to look at our lists; without it, a sender starts a second sooner."""

    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)


def shard_rows(shard: int, topic: str, records: int, transaction_records: int) -> list[OutboxRow]:
    """The records of a shard: the same in every process."""
    return [
        OutboxRow(topic, b"%d-%d" % (shard, n % 50), b"%d-%d" % (shard, n), transaction=n // transaction_records)
        for n in range(records)
    ]


class ReportingProducer:
    """Says `inside` after the first record of a transaction, `committing` and `committed`; dwells inside.

    Args:
        producer: the client.
        pause_seconds: how long it dwells.
        dwells_from: from which transaction on.
    """

    def __init__(self, producer, pause_seconds: float, dwells_from: int = 1) -> None:
        self._producer, self._pause_seconds, self._first = producer, pause_seconds, False
        self._dwells_from, self._begun = dwells_from, 0

    def __getattr__(self, name):
        return getattr(self._producer, name)

    def __len__(self) -> int:
        return len(self._producer)

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()
        self._first, self._begun = True, self._begun + 1

    def produce(self, *row) -> None:
        self._producer.produce(*row)
        if self._first:
            self._first = False
            report("inside")
            if self._begun >= self._dwells_from:
                time.sleep(self._pause_seconds)

    def commit_transaction(self, timeout: float) -> None:
        report("committing")
        self._producer.commit_transaction(timeout)
        report("committed")


def report(word: str) -> None:
    os.write(1, word.encode() + b"\n")


def main(arguments: list[str]) -> None:
    bootstrap, publication, shard, shards, topic, records, transaction_records, pause, dwells_from = arguments
    publisher = Publisher(
        ClientSettings.from_extra({"bootstrap.servers": bootstrap}),
        SenderNames(publication),
        shards=int(shards),
        broker_wait_seconds=60.0,
        open_producer=lambda *call: ReportingProducer(transactional_producer(*call), float(pause), int(dwells_from)),
    )
    rows = shard_rows(int(shard), topic, int(records), int(transaction_records))
    publisher.publish(MemoryShard(rows, shard=int(shard), batch_rows=700))
    report("done")


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas())
    main(sys.argv[1:])
