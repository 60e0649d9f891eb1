"""One full run of a publication without Airflow: stage on Spark standalone, a sender of its own, conclude."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from contexture.storage.home import Home
from contexture.storage.orders import StageOrder
from contexture_sandbox.kafka import EmbeddedKafka
from tools.bench.engines.submitting import Staged, Submits
from tools.bench.outbox_files import PUBLICATION
from tools.bench.sourcing import SourceRun

_NUMBERS = count(1)


class RehearsedRun(SourceRun):
    """A run of the publication of the bench `source`, from an empty home."""

    def __init__(self, home: str, entities: int) -> None:
        super().__init__(Path(), entities)
        self._home = home
        self._number = next(_NUMBERS)

    @property
    def home(self) -> str:
        """As it was given: a folder, or an address on an object store."""
        return self._home

    @property
    def sender_name(self) -> str:
        """No run meets what another one has sent."""
        return f"engines-{self._number}"

    def order(self) -> StageOrder:
        """What the stage job is asked for."""
        return self._order()


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What runs are done with.

    Attributes:
        submits: to Spark.
        url: of the source.
        entities: that it holds.
        executors: of one core each.
    """

    submits: Submits
    url: str
    entities: int
    executors: int = 2

    def stage(self, home: str) -> Staged:
        """A full stage; raises RuntimeError when it isn't all that the source holds."""
        return self._staged(RehearsedRun(home, self.entities))

    def run(self, home: str, kafka: EmbeddedKafka) -> dict[str, float]:
        """A whole run; seconds of each step."""
        run = RehearsedRun(home, self.entities)
        staged = self._staged(run)
        manifest = Home(home).publication(PUBLICATION).outboxes.manifest(str(staged.result.outbox))
        run.publish(manifest, kafka)
        return {"stage": staged.seconds, **run.taken.seconds}

    def with_executors(self, executors: int) -> Rehearsal:
        """The same with more or fewer."""
        return replace(self, executors=executors)

    def _staged(self, run: RehearsedRun) -> Staged:
        staged = self.submits.stage(run.order(), self.url, self.executors)
        if staged.result.records != self.entities or not staged.result.approved:
            raise RuntimeError(f"{staged.result.records} of {self.entities} were prepared: {staged.result.error}")
        return staged
