"""`changes`: what a run of few changes costs, by how much is held.

Measured from the landing to the concluded state: the lookup in state, evaluation, planning, assembly, and the delta.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from contexture.publications import fingerprint
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationStore
from contexture.storage.state import State, StatePointer
from spark_jobs.entities.prepare import prepare
from spark_jobs.shared.outbox import Stopwatch
from tools.bench.cars import cars_publication
from tools.bench.held_states import car_hashes, hold_cars
from tools.bench.landing_files import write_landing, write_sightings
from tools.bench.measures import Measure, Target
from tools.bench.settings import Setting
from tools.bench.spark_session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGET = Target(1.5, at_least=False)
CHANGED = 100


def changes(setting: Setting) -> list[Measure]:
    """A hundred changes over each number of held entities, in turn; then the same with a key-only walk."""
    with spark_session(setting.folder) as spark:
        cases = [ChangesCase(spark, setting.folder / str(held), held) for held in setting.sizes.held_entities]
        for case in cases:
            setting.progress(f"{case.held:,} held: {case.reads()}; warm-up {case.run():.2f} s")
        figures = _rounds(setting, cases, walked=False)
        few, many = cases[0].held, cases[-1].held
        judged = many >= 100 * few
        measures = [_measure(figures, held, few, TARGET if judged else None, "") for held in list(figures)[1:]]
        walks = _rounds(setting, cases, walked=True)
        return [*measures, *(_measure(walks, held, few, None, ", and a key-only walk") for held in walks)]


def _rounds(setting: Setting, cases: list[ChangesCase], *, walked: bool) -> dict[int, list[float]]:
    figures: dict[int, list[float]] = {case.held: [] for case in cases}
    for number in range(setting.sizes.pairs):
        for case in cases if number % 2 == 0 else cases[::-1]:
            figures[case.held].append(case.run(walked=walked))
        shown = ", ".join(f"{held:,} {seconds[-1]:.2f} s" for held, seconds in figures.items())
        setting.progress(f"round {number + 1}{', walked' if walked else ''}: {shown}; {cases[-1].steps()}")
    return figures


def _measure(figures: dict[int, list[float]], held: int, few: int, target: Target | None, beside: str) -> Measure:
    what = f"a run of {CHANGED} changes over {held:,} held{beside}"
    return Measure("changes", what, "s", tuple(figures[held]), tuple(figures[few]), f"over {few:,} held", target)


@dataclass(slots=True)
class ChangesCase:
    """A publication that holds many entities, and a landing of a hundred that changed."""

    spark: SparkSession
    folder: Path
    held: int
    store: PublicationStore = field(init=False)
    landings: dict[bool, LandingManifest] = field(init=False)
    _pointer: StatePointer = field(init=False)
    _watch: Stopwatch = field(init=False)
    _sequences: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.store = Home(str(self.folder / "home")).publication("bench")
        self._pointer = hold_cars(self._state, self.held)
        landed = write_landing(self.store, "changed", CHANGED, self.folder / "lines")
        shutil.rmtree(self.folder / "lines")
        self.landings = {False: landed, True: write_sightings(self.store, landed, "walked", self.held)}

    def run(self, *, walked: bool = False) -> float:
        """Seconds from the landing to the concluded state; the state is as it was before, in another generation."""
        sequence = next(self._sequences)
        # Python workers live on between the runs of a bench, and would know a state that they have seen.
        self._state.commit(self._pointer.model_copy(update={"generation": sequence, "sequence": sequence - 1}))
        self._watch = Stopwatch()
        began = time.perf_counter()
        manifest = prepare(self.spark, self._order(sequence, walked=walked), self.landings[walked], self._watch)
        with self._watch.step("conclude"):
            self.store.outboxes.set_status(manifest.outbox, "approved", reason="bench")
            pointer = conclude(self.store, manifest, cluster=None, target=None)
        seconds = time.perf_counter() - began
        if (manifest.upserts, manifest.deletes, pointer.identities) != (CHANGED, 0, self.held):
            raise RuntimeError(f"{manifest.upserts} upserts, {manifest.deletes} deletes, {pointer.identities} held")
        return seconds

    def reads(self) -> str:
        """How much of the state is read for the changes."""
        reader = self._state.reader(self._pointer)
        return f"{reader.groups_of(car_hashes(range(CHANGED)))} of {reader.groups} row groups hold what changes"

    def steps(self) -> str:
        """Where the last run spent its time."""
        return ", ".join(f"{name} {seconds:.2f}" for name, seconds in self._watch.seconds.items())

    @property
    def _state(self) -> State:
        return self.store.state

    def _order(self, sequence: int, *, walked: bool) -> StageOrder:
        publication = cars_publication(source={"mode": "changes", "detect_deletions": walked})
        return StageOrder(
            publication=publication,
            fingerprint=fingerprint(publication),
            home=self.store.home.root,
            run=self.landings[walked].run,
            mode="changes",
            sequence=sequence,
        )
