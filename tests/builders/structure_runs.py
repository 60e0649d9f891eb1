"""Runs of a registry publication from landings that a test writes, and readers of their outboxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from builders.layout import PublicationPaths
from builders.preparing import Preparer
from contexture.publications import Publication, fingerprint
from contexture.sources.sdmx import split
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import LANDING
from spark_jobs.shared.outbox import Stopwatch
from spark_jobs.structures.prepare import prepare_structures

NOON = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
LANDED = ("complete", "registry_transaction", "source_count", "watermark", "rows_in_group")


class Row(NamedTuple):
    """A landing row."""

    operation: str
    urn: str | None
    body: bytes | None = None
    media_type: str | None = None
    transaction: int | None = None


def registry_publication(**changes: Any) -> Publication:
    """Returns a publication of a registry's structures, with sections replaced by `changes`."""
    settings: dict[str, Any] = {
        "name": "structures",
        "source": {"kind": "sdmx", "connection": "registry"},
        "topics": {"topics": ["structures"]},
    }
    return Publication.model_validate({**settings, **changes})


def structure_order(**asked: Any) -> StageOrder:
    """Returns an order for a stage of a registry publication."""
    return StageOrder.model_validate({"fingerprint": fingerprint(asked["publication"]), **asked})


def upserts(*messages: bytes, transaction: int | None = None) -> list[Row]:
    """Returns every structure of these messages as a read lands it."""
    artefacts = [artefact for message in messages for artefact in split(BytesIO(message))]
    return [Row("upsert", each.urn, each.message(), each.media_type, transaction) for each in artefacts]


def only(operation: str, *urns: str, transaction: int | None = None) -> list[Row]:
    """Returns rows without a body."""
    return [Row(operation, urn, transaction=transaction) for urn in urns]


def moment(transaction: int | None) -> datetime | None:
    """Returns when the registry made a transaction."""
    return None if transaction is None else NOON + timedelta(minutes=transaction)


def structure_landing(
    storage: Home,
    publication: str,
    run: str,
    rows: Sequence[Row],
    *,
    mode: str = "changes",
    complete: bool = False,
    registry_transaction: int | None = None,
    source_count: int | None = None,
    watermark: str | None = None,
    rows_in_group: int = 2,
) -> LandingManifest:
    """Writes the rows as a landing; returns its manifest."""
    folder = PublicationPaths(publication)
    listed = [_row(number, row) for number, row in enumerate(rows)]
    with storage.write_atomically(f"{folder.landing(run)}/part-00000.parquet") as path:
        pq.write_table(
            pa.Table.from_pylist(listed, schema=LANDING), path, row_group_size=rows_in_group, use_dictionary=False
        )
    manifest = LandingManifest.model_validate(
        {
            "run": run,
            "mode": mode,
            "source": "http://127.0.0.1",
            "queries": (),
            "watermark_from": None,
            "watermark_to": watermark,
            "rows": len(rows),
            "present": sum(row.operation == "present" for row in rows),
            "source_count": len({row.urn for row in rows}) if source_count is None else source_count,
            "complete": complete,
            "started_at": NOON,
            "finished_at": NOON + timedelta(hours=3),
            "broker_time": None,
            "files": {},
            "digest": f"digest of {run}",
            "registry_transaction": registry_transaction,
        }
    )
    storage.write(folder.landing_manifest(run), manifest.to_json())
    return manifest


def _row(number: int, row: Row) -> dict[str, object]:
    return {
        "ordinal": number,
        "operation": row.operation,
        "scope": "X",
        "path": "",
        "id": row.urn,
        "type": "Codelist",
        "version": "1.0",
        "body": row.body,
        "media_type": row.media_type,
        "modified_at": moment(row.transaction),
        "source_transaction": row.transaction,
        "received_at": NOON + timedelta(hours=2),
    }


class StructurePreparer(Preparer):
    """The runs of one registry publication, numbered from 1."""

    def prepare(self, entities: Sequence[Any], *, mode: str = "changes", **options: Any) -> Manifest:
        """Prepares the outbox of a new run from these rows, with `options` of the landing or of the order."""
        self.runs += 1
        name = f"run{self.runs}"
        landed = {name: value for name, value in options.items() if name in LANDED}
        asked = {name: value for name, value in options.items() if name not in LANDED}
        structure_landing(self.storage, self.publication.name, name, entities, mode=mode, **landed)
        return self.again(name, mode=mode, **asked)

    def again(self, run: str, *, mode: str = "changes", **asked: Any) -> Manifest:
        """Prepares the outbox of a run whose landing is stored."""
        order = structure_order(
            publication=self.publication,
            home=self.storage.root,
            run=run,
            mode=mode,
            sequence=self.runs,
            **asked,
        )
        landed = LandingManifest.model_validate_json(self.storage.read(self.folder.landing_manifest(run)))
        return prepare_structures(self.spark, order, landed, Stopwatch())

    def sent(self, manifest: Manifest) -> list[list[tuple[str, str]]]:
        """Returns each Kafka transaction as its records: `+` or `-` with the structure, and the topic."""
        transactions: dict[int, list[tuple[str, str]]] = {}
        for record in self.records(manifest):
            sign = "-" if record["value"] is None else "+"
            shown = sign + record["key"].decode().partition("=")[2]
            transactions.setdefault(record["transaction"], []).append((shown, record["topic"]))
        return list(transactions.values())

    def evaluated(self, run: str) -> list[dict[str, Any]]:
        """Returns the rows of a run that the checkpoint reads."""
        path = f"{self.folder.work(run)}/evaluated"
        rows: list[dict[str, Any]] = pq.read_table(self.storage.path(path)).to_pylist()
        return rows


class InProcess:
    """A session that runs its tasks in this process in order, for tests of tasks without Spark."""

    def range(self, start: int, end: int, step: int, slices: int) -> InProcess:
        """Distributes numbers over slices."""
        numbers = list(range(start, end, step))
        self._parts = [numbers[place::slices] for place in range(slices)]
        return self

    def mapInArrow(self, function: Callable[[Iterator[Any]], Iterator[Any]], schema: object) -> InProcess:
        """Runs the function for each slice."""
        batches = (pa.record_batch([pa.array(part, pa.int64())], names=["id"]) for part in self._parts)
        self._found = [row for batch in batches for given in function(iter([batch])) for row in given.to_pylist()]
        return self

    def collect(self) -> list[Any]:
        """Returns the rows."""
        return [_Collected(row) for row in self._found]


class _Collected(dict[str, Any]):
    """A row as Spark returns it."""

    def asDict(self) -> dict[str, Any]:
        return self
