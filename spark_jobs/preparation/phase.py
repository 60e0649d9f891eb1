"""The prepare phase: landing in, outbox out.

    evaluate (all tasks) ──► plan (driver, narrow rows) ──► assemble (a task per shard)
        │                                                        │
     quarantine/                                          outbox/, state_delta/
        └──────────────► judge (one checkpoint) ──► report/

Its manifest is written last; when that is there already, nothing is done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import orjson
import pyarrow.parquet as pq

from contexture.storage.home import Storage
from contexture.storage.inbox_reader import hand_over
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.outboxes import Outboxes
from contexture.storage.schemas import FORMAT_VERSION, LANDING
from contexture.storage.state import State
from spark_jobs.preparation.assembly import SUMMARY, assembly
from spark_jobs.preparation.attribute_rows import ATTRIBUTE_ROWS, ATTRIBUTES_FOLDER, judges_attributes
from spark_jobs.preparation.conflicts import RULE as DUPLICATE
from spark_jobs.preparation.conflicts import quarantine_conflicts
from spark_jobs.preparation.counting import count
from spark_jobs.preparation.description import Findings, described
from spark_jobs.preparation.evaluated import evaluated_folder, evaluated_schema
from spark_jobs.preparation.evaluation import EVALUATED, evaluation
from spark_jobs.preparation.planning import plan
from spark_jobs.preparation.settings import Preparation
from spark_jobs.preparation.snapshot_rules import snapshot_violations
from spark_jobs.preparation.whole_work import check_seen
from spark_jobs.stored_rows import read_rows


class Stopwatch:
    """Seconds by step, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Counts the block's seconds under `name`."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 3)


def prepare(spark: Any, order: StageOrder, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    """Makes the outbox of one pull.

    Args:
        spark: the session.
        order: what the scheduler asked for.
        landing: what was pulled.
        watch: gets the seconds of each step.

    Returns:
        The outbox's manifest; the outbox is `prepared`.

    Raises:
        ConfigurationError: more identities vanish than may.
        RetriableError: the storage failed.
    """
    preparation = preparation_of(order, landing, landing.digest)
    return made_once(preparation, lambda: _prepared(spark, preparation, landing, watch))


def made_once(preparation: Preparation, make: Callable[[], Manifest]) -> Manifest:
    """The manifest of an outbox that is `prepared`: the one that is there, or else a new one, written last."""
    storage = Storage(preparation.home)
    outboxes = Outboxes(storage, preparation.publication.name)
    if storage.exists(outboxes.folder.manifest(preparation.outbox)):
        manifest = outboxes.manifest(preparation.outbox)
    else:
        _clear(storage, preparation)
        manifest = make()
        storage.write(outboxes.folder.manifest(preparation.outbox), manifest.to_json())
    outboxes.prepared(manifest)
    return manifest


def _prepared(spark: Any, preparation: Preparation, landing: LandingManifest, watch: Stopwatch) -> Manifest:
    storage = Storage(preparation.home)
    hand_over(storage, preparation.publication.name, preparation.order.run, preparation.outbox)
    with watch.step("evaluate"):
        evaluate(spark, preparation)
    with watch.step("plan"):
        confirmed = preparation.order.confirm_shrink
        planned = plan(
            preparation,
            landed=landing.rows,
            tells_absence=landing.complete,
            confirmed_shrink=confirmed,
            as_of=landing.broker_time,
        )
        quarantine_conflicts(storage, preparation, planned.conflicting)
    with watch.step("assemble"):
        shards = assemble(spark, preparation)
        check_seen(sum(shard.pop("upserts") for shard in shards), planned.upserts, "rendered events")
    counts = count(storage, preparation, planned)
    with watch.step("snapshot"):
        broken = snapshot_violations(storage, preparation, landing)
        broken |= {"count-drop": planned.dropped, DUPLICATE: planned.contradictions}
    return described(preparation, landing, Findings(planned, counts, shards, broken))


def evaluate(spark: Any, preparation: Preparation) -> None:
    """Runs the one pass over the landing rows."""
    from pyspark.sql.pandas.types import from_arrow_schema

    storage = Storage(preparation.home)
    # So that a landing without rows has narrow columns too.
    with storage.replacing(f"{evaluated_folder(preparation)}/empty.parquet") as path:
        pq.write_table(evaluated_schema(preparation).empty_table(), path, filesystem=storage.filesystem)
    if judges_attributes(preparation.publication):
        with storage.replacing(f"{preparation.work}/{ATTRIBUTES_FOLDER}/empty.parquet") as path:
            pq.write_table(ATTRIBUTE_ROWS.empty_table(), path, filesystem=storage.filesystem)
    landed = read_rows(spark, storage, preparation.folder.landing(preparation.order.run), LANDING)
    landed.mapInArrow(evaluation(preparation), from_arrow_schema(EVALUATED)).collect()


def assemble(spark: Any, preparation: Preparation) -> list[dict[str, int]]:
    """Runs one task per shard; gives a row of SUMMARY for each, by shard."""
    from pyspark.sql.pandas.types import from_arrow_schema

    shards = preparation.publication.publish.shards
    frame = spark.range(0, shards, 1, shards).mapInArrow(assembly(preparation), from_arrow_schema(SUMMARY))
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: row["shard"])


def outbox_id(order: StageOrder, landing_digest: str, generation: int) -> str:
    """The content-derived id: the same inputs give the same id, and the same bytes."""
    publication = order.publication
    parts = {
        "publication": publication.name,
        "fingerprint": order.fingerprint,
        "quality": publication.quality.model_dump(mode="json"),
        "collision": publication.topics.collision,
        "shards": publication.publish.shards,
        "transaction_records": publication.publish.transaction_records,
        "landing": landing_digest,
        "generation": generation,
        "mode": order.mode,
        "republish": order.republish and order.run,
        "suppress_unchanged": publication.source.suppress_unchanged,
        "format": FORMAT_VERSION,
    }
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def preparation_of(order: StageOrder, landing: LandingManifest, digest: str) -> Preparation:
    """What is prepared; `digest` is of all that counts of the landing."""
    pointer = State(Storage(order.home), order.publication.name).pointer()
    if not landing.rows:
        # Runs that find nothing land the same: an outbox that was rejected is not that of the next one.
        digest = f"{digest} {order.run}"
    return Preparation(
        order=order,
        outbox=outbox_id(order, digest, pointer.generation),
        pointer_json=pointer.to_json(),
        reference_time=landing.finished_at,
        in_turn=landing.notified > 0,
    )


def _clear(storage: Storage, preparation: Preparation) -> None:
    """A task that was killed may have left half of everything."""
    storage.remove(preparation.work)
    storage.remove(preparation.folder.quarantine(preparation.outbox))
    storage.remove(preparation.folder.outbox(preparation.outbox))
