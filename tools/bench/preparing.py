"""`prepare`: from landing to the manifest of an outbox, against a plain copy of the same rows in the same Spark."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.publications import Publication, fingerprint
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationStore
from spark_jobs.entities.judge import judge_outbox
from spark_jobs.entities.prepare import prepare as prepare_outbox
from spark_jobs.shared.outbox import Stopwatch
from tools.bench.cars import cars_publication
from tools.bench.landing_files import write_landing
from tools.bench.measures import Measure, Target, alternate
from tools.bench.settings import Setting
from tools.bench.spark_session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

TARGET = Target(3.0, at_least=False)
HELD_TO_TARGET = 100_000
"""Below, both sides are mostly fixed costs of Spark, and the table shows their ratio without judging it."""
_JUDGED = 3
COPY = "typed JSON to Parquet, same rows"


def prepare(setting: Setting) -> list[Measure]:
    """Full mode with a state of equal size, all rules, for each number of entities; then the checkpoint alone."""
    prepared: dict[int, Measure] = {}
    checkpoints: list[Measure] = []
    with spark_session(setting.folder) as spark:
        for entities in setting.sizes.prepared_entities:
            setting.progress(f"{entities:,} entities: writing a landing, preparing and concluding it once")
            case = PreparedCase(spark, setting.folder / str(entities), entities)
            setting.progress(f"warm-up of the copy: {case.copy():.1f} s")
            ours, peer = alternate(case.prepare, case.copy, setting.sizes.pairs, setting.progress)
            target = TARGET if entities >= HELD_TO_TARGET else None
            prepared[entities] = Measure("prepare", f"{entities:,} entities", "s", ours, peer, COPY, target)
            setting.progress("the Great Expectations checkpoint alone")
            checkpoints.append(case.checkpoint(min(setting.sizes.pairs, _JUDGED)))
            case.remove()
    return [*prepared.values(), _per_event(prepared), *checkpoints]


def _per_event(prepared: dict[int, Measure]) -> Measure:
    """What one event costs among many, against one among few (not in turn: one size follows the other)."""
    few, many = min(prepared), max(prepared)
    costs = {
        entities: tuple(seconds / entities * 1_000_000 for seconds in prepared[entities].ours)
        for entities in (few, many)
    }
    return Measure("prepare", f"an event among {many:,}", "us", costs[many], costs[few], f"an event among {few:,}")


@dataclass(slots=True)
class PreparedCase:
    """A publication whose state holds as many entities as its landing."""

    spark: SparkSession
    folder: Path
    entities: int
    store: PublicationStore = field(init=False)
    landing: LandingManifest = field(init=False)
    publication: Publication = field(init=False)
    _schema: StructType = field(init=False)
    _sequences: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.publication = cars_publication()
        self.store = Home(str(self.folder / "home")).publication(self.publication.name)
        self.landing = write_landing(self.store, "bench", self.entities, self._lines)
        self._schema = self.spark.read.json(str(self._lines / "part-00000.json"), samplingRatio=0.01).schema
        first = self._prepared()
        self.store.outboxes.set_status(first.outbox, "approved", reason="bench")
        conclude(self.store, first, cluster=None, target=None)

    def prepare(self) -> float:
        """Seconds of one preparation that sends everything, in a run of its own generation of state."""
        # Python workers live on between the runs of a bench, and would know the index of a state they have seen.
        state = self.store.state
        pointer = state.pointer()
        state.commit(pointer.model_copy(update={"generation": pointer.generation + 1}))
        began = time.perf_counter()
        manifest = self._prepared()
        seconds = time.perf_counter() - began
        if manifest.upserts != self.entities:
            raise RuntimeError(f"{manifest.upserts} of {self.entities} entities were prepared: {manifest.quarantined}")
        self.store.outbox(manifest.outbox).remove()
        return seconds

    def copy(self) -> float:
        """Seconds of the peer."""
        target = self.folder / "copy"
        began = time.perf_counter()
        self.spark.read.schema(self._schema).json(str(self._lines)).write.mode("overwrite").parquet(str(target))
        return time.perf_counter() - began

    def checkpoint(self, times: int) -> Measure:
        """The checkpoint of what was prepared; the first one in a session pays for imports."""
        manifest = self._prepared()
        seconds = tuple(self._judge(manifest) for _ in range(times))
        return Measure("prepare", f"Great Expectations checkpoint of {self.entities:,} entities", "s", seconds)

    def remove(self) -> None:
        """Makes room for the next one."""
        shutil.rmtree(self.folder)

    @property
    def _lines(self) -> Path:
        return self.folder / "lines"

    def _prepared(self) -> Manifest:
        return prepare_outbox(self.spark, self._order(next(self._sequences)), self.landing, Stopwatch())

    def _judge(self, manifest: Manifest) -> float:
        self.store.outbox(manifest.outbox).report.remove()
        began = time.perf_counter()
        judge_outbox(self.spark, self._order(manifest.sequence), self.landing, manifest)
        return time.perf_counter() - began

    def _order(self, sequence: int) -> StageOrder:
        return StageOrder(
            publication=self.publication,
            fingerprint=fingerprint(self.publication),
            home=self.store.home.root,
            run=self.landing.run,
            mode="full",
            sequence=sequence,
        )
