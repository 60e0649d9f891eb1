"""Preparing outboxes one after the other in one home, and looking into them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from builders.landing import landing
from builders.layout import PublicationPaths
from contexture.publications import Publication, fingerprint
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import Retry, StageOrder
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.quarantine_retry import write_retry_landing
from spark_jobs.entities.prepare import prepare
from spark_jobs.shared.outbox import Stopwatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Entity = dict[str, object] | bytes
LANDED = ("present", "complete", "finished", "received_seconds")


class Preparer:
    """The runs of one publication, numbered from 1."""

    def __init__(self, spark: SparkSession, home: Path, publication: Publication) -> None:
        self.spark = spark
        self.storage = Home(str(home))
        self.publication = publication
        self.folder = PublicationPaths(publication.name)
        self.state = self.storage.publication(publication.name).state
        self.runs = 0

    def prepare(self, entities: Sequence[Entity], *, mode: str = "changes", **options: Any) -> Manifest:
        """The outbox of a new run; `options` are those of the landing, or of the order."""
        self.runs += 1
        name = f"run{self.runs}"
        landed = {name: value for name, value in options.items() if name in LANDED}
        asked = {name: value for name, value in options.items() if name not in LANDED}
        landing(self.storage, self.publication.name, name, entities, mode=mode, **landed)
        return self.again(name, mode=mode, **asked)

    def again(self, run: str, *, mode: str = "changes", **asked: Any) -> Manifest:
        """The outbox of a run whose landing is there."""
        order = StageOrder.model_validate(
            {
                "publication": self.publication,
                "fingerprint": fingerprint(self.publication),
                "home": self.storage.root,
                "run": run,
                "mode": mode,
                "sequence": self.runs,
                **asked,
            }
        )
        landed = LandingManifest.model_validate_json(self.storage.read(self.folder.landing_manifest(run)))
        return prepare(self.spark, order, landed, Stopwatch())

    def concluded(self, entities: Sequence[Entity], **options: Any) -> Manifest:
        """The outbox of a new run, concluded."""
        return self.conclude(self.prepare(entities, **options))

    def conclude(self, manifest: Manifest, **options: Any) -> Manifest:
        """Concludes an outbox, which is given back."""
        self.storage.publication(self.publication.name).outboxes.set_status(
            manifest.outbox, "approved", reason="a test says so"
        )
        conclude(self.storage.publication(manifest.publication), manifest, cluster="c", target="t", **options)
        return manifest

    def retry(self, outbox: str, **asked: Any) -> Manifest:
        """The outbox of a new run that tries again what another one's run refused, concluded."""
        self.runs += 1
        retry = Retry(outbox=outbox)
        order = StageOrder(
            publication=self.publication,
            fingerprint=fingerprint(self.publication),
            home=self.storage.root,
            run=f"run{self.runs}",
            mode="changes",
            sequence=self.runs,
            retry=retry,
        )
        write_retry_landing(Home(order.home).publication(order.publication.name), order, retry)
        return self.conclude(self.again(order.run, retry=retry, **asked))

    def records(self, manifest: Manifest) -> list[dict[str, Any]]:
        """All records, shard by shard in sending order."""
        readers = [OutboxShardReader(self.storage, manifest, shard.shard) for shard in manifest.shards]
        return [row for reader in readers for batch in reader.batches(0) for row in batch.to_pylist()]

    def quarantine(self, manifest: Manifest) -> list[dict[str, Any]]:
        """What was refused, in order."""
        folder = self.folder.quarantine(manifest.outbox)
        names = self.storage.files(folder, ".parquet")
        tables = [pq.read_table(self.storage.path(f"{folder}/{name}"), partitioning=None) for name in names]
        return pa.concat_tables(tables).to_pylist() if tables else []

    def held(self, *columns: str) -> dict[str, Any]:
        """The state: identity to the values of these columns."""
        table = self.state.table(self.state.pointer())
        rows = table.sort_by("identity").to_pylist()
        return {row["identity"].decode(): tuple(row[column] for column in columns) for row in rows}
