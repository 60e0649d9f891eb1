"""What Airflow's workers and services, PostgreSQL, Redis and the object store are asked for by whole runs."""

from __future__ import annotations

from pathlib import Path

from bench.engines.attending import attended
from bench.engines.counted_platform import CountedPlatform, write_publications
from bench.engines.database import Databases, Stock
from bench.engines.rounds import Round, Rounds
from bench.engines.spark import BENCH
from bench.measures import Measure, alternate
from bench.running import cars
from bench.settings import Setting
from cluster.postgres import DATABASES
from contexture.sandbox.stack import StackOptions

KIBIBYTE = 1024


def airflow(setting: Setting) -> list[Measure]:
    """Rounds of small publications through the scheduler, with one Celery worker and with two."""
    folder = setting.folder / "publications"
    names = write_publications(folder, setting.sizes.engine_publications)
    # The home is on the object store; this one stays unused.
    with CountedPlatform(StackOptions(folder, Path("unused")), setting.tell) as platform:
        platform.broker.load(cars(setting.sizes.engine_cars))
        platform.client.await_dags([f"publish_{name}" for name in names])
        databases = Databases(platform.postgres)
        databases.prepare()
        return _Airflow(setting, Rounds(platform, databases, names, setting)).measures()


class _Airflow:
    """The rows that one platform gives."""

    def __init__(self, setting: Setting, rounds: Rounds) -> None:
        self._setting = setting
        self._rounds = rounds
        self._platform = rounds.platform
        self._found: list[Round] = []
        self._told = f"{setting.sizes.engine_cars} entities"

    def measures(self) -> list[Measure]:
        """Memory and connections in a round of their own, then speed, then what was counted in all rounds."""
        self._setting.tell("warm-up: topics, ledgers and first states are made")
        self._rounds.taken("full")
        resting = [self._rounds.rest() for _ in range(self._setting.sizes.engine_pairs)]
        seen = attended(self._rounds)
        before = self._rounds.databases.stock()
        speed = self._speed()
        unchanged = [self._rounds.taken("changes")]
        grown = {name: now.since(before[name]) for name, now in self._rounds.databases.stock().items()}
        return [
            speed,
            *self._processor(resting, unchanged),
            *seen,
            *self._stored(grown, len(self._found) + len(unchanged)),
            *self._asked(resting, unchanged),
        ]

    def _speed(self) -> Measure:
        def rate(workers: int) -> float:
            self._platform.set_workers(workers)
            self._found.append(self._rounds.taken("full"))
            return self._found[-1].runs_a_minute

        number = self._setting.sizes.engine_publications
        what = f"Airflow: full runs of {number} publications of {self._told} at once, 2 Celery workers of two slots"
        figures = alternate(lambda: rate(2), lambda: rate(1), self._setting.sizes.engine_pairs, self._setting.tell)
        return Measure(BENCH, what, "runs/min", *figures, "1 worker")

    def _processor(self, resting: list[Round], unchanged: list[Round]) -> list[Measure]:
        """By part, what a run adds; then what the part takes at rest."""
        rest, rows = resting[len(resting) // 2], []
        for part in self._platform.parts:
            full = tuple(each.processor_of(part, rest) for each in self._found)
            none = tuple(each.processor_of(part, rest) for each in unchanged)
            rows.append(Measure(BENCH, f"Airflow: processor time of {part}, a full run of {self._told}", "s", full))
            rows.append(Measure(BENCH, f"Airflow: processor time of {part}, a run with nothing to send", "s", none))
            shares = tuple(each.processor[part] / each.seconds * 100 for each in resting)
            rows.append(Measure(BENCH, f"Airflow: share of a core of {part} at rest", "%", shares))
        return rows

    def _stored(self, grown: dict[str, Stock], rounds: int) -> list[Measure]:
        """Rows and bytes that a run leaves, over all rounds."""
        runs, rows = rounds * self._setting.sizes.engine_publications, []
        for database in DATABASES:
            stock, told = grown[database], f"database {database}"
            largest = sorted(stock.rows.items(), key=lambda item: -item[1])
            self._setting.tell(f"{told}: " + ", ".join(f"{name} {number / runs:.1f}" for name, number in largest))
            rows.append(
                Measure(
                    BENCH, f"PostgreSQL: rows that a run leaves in {told}", "rows", (sum(stock.rows.values()) / runs,)
                )
            )
            size = sum(stock.bytes.values()) / runs / KIBIBYTE
            rows.append(
                Measure(BENCH, f"PostgreSQL: disk that a run takes in {told}, indexes included", "KiB", (size,))
            )
        return rows

    def _asked(self, resting: list[Round], unchanged: list[Round]) -> list[Measure]:
        rest = resting[len(resting) // 2]
        full, none = (tuple(each.statements_of(rest) for each in rounds) for rounds in (self._found, unchanged))
        second = tuple(each.statements / each.seconds for each in resting)
        return [
            Measure(BENCH, f"PostgreSQL: statements of a full run of {self._told}", "statements", full),
            Measure(BENCH, "PostgreSQL: statements of a run with nothing to send", "statements", none),
            Measure(BENCH, "PostgreSQL: statements at rest, a second", "statements/s", second),
            *self._traffic("a full run", self._found),
            *self._traffic("a run with nothing to send", unchanged),
        ]

    def _traffic(self, told: str, rounds: list[Round]) -> list[Measure]:
        each = [(found.traffic, found.runs) for found in rounds]
        return [
            Measure(BENCH, f"S3: requests of {told}", "requests", tuple(one.requests / runs for one, runs in each)),
            Measure(
                BENCH, f"S3: PUT, POST and LIST of {told}", "requests", tuple(one.writing / runs for one, runs in each)
            ),
            Measure(
                BENCH,
                f"S3: bytes written by {told}",
                "KiB",
                tuple(one.received / runs / KIBIBYTE for one, runs in each),
            ),
            Measure(BENCH, f"S3: bytes read by {told}", "KiB", tuple(one.sent / runs / KIBIBYTE for one, runs in each)),
        ]
