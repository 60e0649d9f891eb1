"""Outboxes of structure publications: what a registry did, as the Kafka transactions that publish it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication
from contexture.publications import Publication
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest, RegistryPart
from contexture.storage.publication_store import SHARD_FILE
from contexture.storage.schemas import STRUCTURE_OUTBOX

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
URN = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=ECB:CL_{}(1.0)"
HEADER = "header:contexture_registry_transaction"


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """One Kafka transaction: structures that a registry transaction changed, or deleted.

    `body` is each structure's; None: which transaction it is of.
    """

    id: int
    names: tuple[str, ...]
    deletions: bool = False
    body: bytes | None = None

    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values."""
        value = None if self.deletions else self.body or b"%d" % self.id
        return [(URN.format(name).encode(), value) for name in self.names]


def parts(transactions: Sequence[RegistryChange]) -> tuple[RegistryPart, ...]:
    """What a manifest says about them."""
    firsts = [0, *accumulate(len(each.names) for each in transactions)]
    return tuple(
        RegistryPart(
            transaction=number,
            first_position=firsts[number],
            id=each.id,
            deletions=each.deletions,
            at=START + timedelta(minutes=each.id),
        )
        for number, each in enumerate(transactions)
    )


def shard(
    transactions: Iterable[RegistryChange],
    *,
    outbox: str = "own",
    sequence: int = 1,
    topic: str = "structures",
    flush: bool = False,
) -> MemoryShard:
    """Them as a shard in memory."""
    listed = list(transactions)
    rows = [
        OutboxRow(topic, key, value, transaction=number)
        for number, each in enumerate(listed)
        for key, value in each.records()
    ]
    return MemoryShard(rows, outbox_id=outbox, sequence=sequence, registry=parts(listed), flush=flush)


def structures(name: str = "codelists", topic: str = "structures", **changes: Any) -> Publication:
    """A publication of a registry's structures, with sections replaced by `changes`."""
    settings: dict[str, Any] = {
        "name": name,
        "source": {"kind": "sdmx", "connection": "registry", "select": ["*"]},
        "topics": {"naming": "fixed", "topics": [topic], "keep": "latest"},
        "message": {"format": "sdmx"},
    }
    return publication(**{**settings, **changes})


def registry_outbox(
    storage: Home,
    owner: Publication,
    sequence: int,
    transactions: Sequence[RegistryChange],
    *,
    name: str | None = None,
    flush: bool = False,
    baseline: bool = False,
) -> Manifest:
    """Writes a prepared outbox with them to the publication's first topic."""
    (topic,) = owner.topics.topics[:1]
    records = [(topic, key, value) for each in transactions for key, value in each.records()]
    mode = "full" if flush else "changes"
    made = outbox(storage, owner, sequence, [records], name=name, mode=mode)
    if records:
        _write(storage, f"{PublicationPaths(owner.name).shard(made.outbox, 0)}/{SHARD_FILE}", transactions, records)
    described = made.shards[0].model_copy(update={"registry": parts(transactions), "transactions": len(transactions)})
    last = max((each.id for each in transactions), default=0)
    manifest = made.model_copy(
        update={"shards": (described,), "flush": flush, "baseline": baseline, "watermark": str(last)}
    )
    storage.write(PublicationPaths(owner.name).manifest(made.outbox), manifest.to_json())
    return manifest


def _write(
    storage: Home, path: str, transactions: Sequence[RegistryChange], records: Sequence[tuple[Any, ...]]
) -> None:
    numbers = [number for number, each in enumerate(transactions) for _ in each.names]
    ids = [transactions[number].id for number in numbers]
    count = len(records)
    columns: dict[str, list[Any]] = {
        "position": list(range(count)),
        "topic": [topic for topic, _, _ in records],
        "key": [key for _, key, _ in records],
        "value": [value for _, _, value in records],
        "partition": [None] * count,
        "timestamp": [START + timedelta(minutes=id) for id in ids],
        "transaction": numbers,
        "batch": [0] * count,
        "sub_batch": [0] * count,
        "events": [1] * count,
        "source_transaction": ids,
        HEADER: [b"%d" % id for id in ids],
    }
    with (
        storage.write_atomically(path) as temporary,
        pq.ParquetWriter(temporary, STRUCTURE_OUTBOX, compression="zstd", use_dictionary=["topic"]) as writer,
    ):
        rows = pa.Table.from_pydict(columns, schema=STRUCTURE_OUTBOX)
        # A row group of its own for each transaction: large records are in different ones, as the stage writes them.
        first = 0
        for each in transactions:
            writer.write_table(rows.slice(first, len(each.names)))
            first += len(each.names)
