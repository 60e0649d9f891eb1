"""What a home on an object store costs: requests and bytes of a run, and its time against a folder's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from contexture_sandbox.kafka import EmbeddedKafka
from tools.bench.engines.counted_store import CountedStore, Traffic
from tools.bench.engines.rehearsing import Rehearsal
from tools.bench.engines.spark import BENCH, standalone
from tools.bench.engines.submitting import Submits
from tools.bench.measures import Measure, alternate
from tools.bench.senders import bench_kafka
from tools.bench.settings import Setting
from tools.bench.source_process import source_broker
from tools.cluster.evidence import variables
from tools.cluster.object_store import BUCKET

KIBIBYTE = 1024


def store(setting: Setting) -> list[Measure]:
    """Runs of few and of many entities, in turn on the store and in a folder."""
    setting.progress("starting an S3 server and Spark")
    with _engines(setting) as (counted, submits), bench_kafka(setting) as kafka:
        few, many = (_Runs(setting, counted, number) for number in setting.sizes.store_entities)
        few.taken(submits, kafka, warm_up=True)
        many.taken(submits, kafka, warm_up=False)
    return [few.time(), many.time(), *many.traffic_against(few)]


@contextmanager
def _engines(setting: Setting) -> Iterator[tuple[CountedStore, Submits]]:
    with (
        CountedStore(setting.folder / "object-store.log", setting.progress) as counted,
        # The sender and the conclusion reach the store by the variables of this process.
        variables(counted.variables),
        standalone(setting.folder, counted.variables) as spark,
    ):
        yield counted, Submits(spark, setting.folder, counted.variables)


class _Runs:
    """Runs of one number of entities."""

    def __init__(self, setting: Setting, counted: CountedStore, entities: int) -> None:
        self._setting = setting
        self._counted = counted
        self._entities = entities
        self._numbers = count(1)
        self._traffic: list[Traffic] = []
        self._seconds: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    def taken(self, submits: Submits, kafka: EmbeddedKafka, *, warm_up: bool) -> None:
        """Takes all pairs: on the store, in a folder."""
        with source_broker(self._entities) as url:
            rehearsal = Rehearsal(submits, url, self._entities)
            if warm_up:
                self._setting.progress(f"warm-up: {self._on_store(rehearsal, kafka):.1f} s on the store")
                self._traffic.clear()
            self._seconds = alternate(
                lambda: self._on_store(rehearsal, kafka),
                lambda: self._run(rehearsal, str(self._setting.folder / self._name()), kafka),
                self._setting.sizes.engine_pairs,
                self._setting.progress,
            )

    def time(self) -> Measure:
        """Seconds of a run on the store against a folder."""
        what = f"S3: stage, send and conclude {self._entities:,} entities, the home on the test's S3 server"
        return Measure(BENCH, what, "s", *self._seconds, "the home in a folder")

    def traffic_against(self, fewer: _Runs) -> list[Measure]:
        """Requests and bytes of a run."""
        return [
            self._against(fewer, "requests", "requests", lambda traffic: traffic.requests),
            self._against(fewer, "PUT, POST and LIST of these", "requests", lambda traffic: traffic.writing),
            self._against(fewer, "bytes written", "KiB", lambda traffic: traffic.received / KIBIBYTE),
            self._against(fewer, "bytes read", "KiB", lambda traffic: traffic.sent / KIBIBYTE),
        ]

    def _against(self, fewer: _Runs, what: str, unit: str, figure: Callable[[Traffic], float]) -> Measure:
        ours, others = (tuple(figure(each) for each in runs._traffic) for runs in (self, fewer))
        title = f"S3: {what} of a run without Airflow, {self._entities:,} entities"
        return Measure(BENCH, title, unit, ours, others, f"{fewer._entities:,} entities")

    def _on_store(self, rehearsal: Rehearsal, kafka: EmbeddedKafka) -> float:
        mark = self._counted.mark()
        seconds = self._run(rehearsal, f"s3://{BUCKET}/{self._name()}", kafka)
        self._traffic.append(self._counted.since(mark))
        counts = ", ".join(f"{number} {method}" for method, number in sorted(self._traffic[-1].by_method.items()))
        self._setting.progress(f"requests: {counts}")
        return seconds

    def _run(self, rehearsal: Rehearsal, home: str, kafka: EmbeddedKafka) -> float:
        steps = rehearsal.run(home, kafka)
        where = "store" if "://" in home else "folder"
        self._setting.progress(f"{where}: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in steps.items()))
        return sum(steps.values())

    def _name(self) -> str:
        return f"home-{self._entities}-{next(self._numbers)}"
