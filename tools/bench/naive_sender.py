"""The plain way, in a process of its own: `python -m tools.bench.naive_sender HOME OUTBOX BOOTSTRAP_SERVERS [ID]`.

One producer with our settings gets record by record, shard after shard, in the order of the outbox; with a
transactional id in transactions as large as ours may be. Says `ready` when all records are in memory, waits for a line,
sends, and prints one JSON line.
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Producer

from contexture.kafka import ClientSettings
from contexture.storage.home import Home
from tools.bench.outbox_files import PUBLICATION, TRANSACTION_RECORDS

Row = tuple[str, bytes, bytes]
# The brokers' longest: such a transaction takes minutes.
_PATIENT = {"transaction.timeout.ms": 900_000}


def main(arguments: list[str]) -> None:
    """Sends the records and prints the result."""
    home, outbox, bootstrap_servers, *ids = arguments
    rows = _rows(Home(home), outbox)
    settings = ClientSettings.from_extra({"bootstrap.servers": bootstrap_servers})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    started = time.monotonic()
    if ids:
        _send_in_transactions(Producer({**settings.producer(ids[0]), **_PATIENT}), rows)
    else:
        _send(Producer(settings.producer()), rows)
    sys.stdout.write(json.dumps({"records": len(rows), "seconds": time.monotonic() - started, "peak_bytes": 0}) + "\n")
    sys.stdout.flush()


def _rows(storage: Home, outbox: str) -> list[Row]:
    manifest = storage.publication(PUBLICATION).outboxes.manifest(outbox)
    rows: list[Row] = []
    for shard in manifest.shards:
        for batch in storage.publication(PUBLICATION).reader(manifest, shard.shard).batches(0):
            columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
            rows += zip(*columns, strict=True)
    return rows


def _send_in_transactions(producer: Producer, rows: list[Row]) -> None:
    producer.init_transactions(60)
    for first in range(0, len(rows), TRANSACTION_RECORDS):
        producer.begin_transaction()
        _send(producer, rows[first : first + TRANSACTION_RECORDS])
        producer.commit_transaction(600)


def _send(producer: Producer, rows: list[Row]) -> None:
    for topic, key, value in rows:
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    if producer.flush(600):
        raise RuntimeError("records were left behind")


if __name__ == "__main__":
    main(sys.argv[1:])
