"""What Airflow's workers and services, PostgreSQL, Redis and the object store are asked for by whole runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from pathlib import Path

from contexture_sandbox.stack import StackOptions
from tools.bench.engines.attending import attended
from tools.bench.engines.counted_platform import CountedPlatform, write_publications
from tools.bench.engines.database import Databases, Stock
from tools.bench.engines.rounds import Round, Rounds
from tools.bench.engines.spark import BENCH
from tools.bench.measures import Measure, alternate
from tools.bench.running import cars
from tools.bench.settings import Setting
from tools.cluster.postgres import DATABASES

KIBIBYTE = 1024
WORKERS = 2
Pair = tuple[Round, Round]
"""A round of full runs, and one of runs with nothing to send."""


def airflow(setting: Setting) -> list[Measure]:
    """Rounds of small publications through the scheduler, with one Celery worker and with two."""
    folder = setting.folder / "publications"
    names = write_publications(folder, setting.sizes.engine_publications)
    # The home is on the object store; this one stays unused.
    platform = CountedPlatform(StackOptions(folder, Path("unused")), setting.progress)
    with platform:
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
        self._found: dict[int, list[Round]] = {}
        self._load = f"{setting.sizes.engine_cars} entities"

    def measures(self) -> list[Measure]:
        """Memory and connections in a round of their own, then speed, then what was counted in all rounds."""
        self._setting.progress("warm-up: topics, ledgers and first states are made")
        self._rounds.taken("full")
        resting = [self._rounds.rest() for _ in range(self._setting.sizes.engine_pairs)]
        seen = attended(self._rounds)
        before = self._rounds.databases.stock()
        speed = self._speed()
        pairs = list(zip(self._found[WORKERS], self._unchanged(), strict=True))
        grown = {name: now.since(before[name]) for name, now in self._rounds.databases.stock().items()}
        rounds = sum(map(len, self._found.values())) + len(pairs)
        return [
            speed,
            *processor(self._load, pairs, resting),
            *seen,
            *self._stored(grown, rounds),
            *asked(self._load, pairs, resting),
        ]

    def _speed(self) -> Measure:
        def rate(workers: int) -> float:
            self._platform.set_workers(workers)
            self._found.setdefault(workers, []).append(self._rounds.taken("full"))
            return self._found[workers][-1].runs_a_minute

        number = self._setting.sizes.engine_publications
        what = f"Airflow: full runs of {number} publications of {self._load} at once, 2 Celery workers of two slots"
        figures = alternate(
            lambda: rate(WORKERS), lambda: rate(1), self._setting.sizes.engine_pairs, self._setting.progress
        )
        return Measure(BENCH, what, "runs/min", *figures, "1 worker")

    def _unchanged(self) -> list[Round]:
        """As many rounds in which the sources hold what was sent already."""
        self._platform.set_workers(WORKERS)
        return [self._rounds.taken("changes") for _ in self._found[WORKERS]]

    def _stored(self, grown: dict[str, Stock], rounds: int) -> list[Measure]:
        """Rows and bytes that a run leaves, over all rounds."""
        runs, rows = rounds * self._setting.sizes.engine_publications, []
        for database in DATABASES:
            stock, where = grown[database], f"database {database}"
            largest = sorted(stock.rows.items(), key=lambda item: -item[1])
            self._setting.progress(f"{where}: " + ", ".join(f"{name} {number / runs:.1f}" for name, number in largest))
            rows.append(
                Measure(
                    BENCH, f"PostgreSQL: rows that a run leaves in {where}", "rows", (sum(stock.rows.values()) / runs,)
                )
            )
            size = sum(stock.bytes.values()) / runs / KIBIBYTE
            rows.append(
                Measure(BENCH, f"PostgreSQL: disk that a run takes in {where}, indexes included", "KiB", (size,))
            )
        return rows


def processor(load: str, pairs: Sequence[Pair], resting: Sequence[Round]) -> list[Measure]:
    """By part, what a full run adds, against a run with nothing to send; then what the part takes at rest."""
    rest, rows = middle(resting), []
    for part in rest.processor:
        full, none = _both(pairs, methodcaller("processor_of", part, rest))
        what = f"Airflow: processor time of {part}, a full run of {load}"
        shares = tuple(each.processor[part] / each.seconds * 100 for each in resting)
        rows += [
            _against(what, "s", full, none),
            Measure(BENCH, f"Airflow: share of a core of {part} at rest", "%", shares),
        ]
    return rows


def asked(load: str, pairs: Sequence[Pair], resting: Sequence[Round]) -> list[Measure]:
    """What a full run asks of PostgreSQL and the object store, against a run with nothing to send."""
    rest = middle(resting)
    figures: tuple[tuple[str, str, Callable[[Round], float]], ...] = (
        ("PostgreSQL: statements", "statements", lambda found: found.statements_of(rest)),
        ("S3: requests", "requests", lambda found: found.traffic.requests / found.runs),
        ("S3: PUT, POST and LIST", "requests", lambda found: found.traffic.writing / found.runs),
        ("S3: bytes written", "KiB", lambda found: found.traffic.received / found.runs / KIBIBYTE),
        ("S3: bytes read", "KiB", lambda found: found.traffic.sent / found.runs / KIBIBYTE),
    )
    second = tuple(each.statements / each.seconds for each in resting)
    rows = [_against(f"{what} of a full run of {load}", unit, *_both(pairs, figure)) for what, unit, figure in figures]
    return [*rows, Measure(BENCH, "PostgreSQL: statements at rest, a second", "statements/s", second)]


def middle(rounds: Sequence[Round]) -> Round:
    """The one of these looks at the platform at rest that asked PostgreSQL neither most nor least."""
    return sorted(rounds, key=lambda each: each.statements / each.seconds)[len(rounds) // 2]


def _against(what: str, unit: str, full: tuple[float, ...], none: tuple[float, ...]) -> Measure:
    # What a run adds to a part that hardly notices may be nothing: then there is no ratio.
    peer = none if all(figure > 0 for figure in none) else ()
    return Measure(BENCH, what, unit, full, peer, "a run with nothing to send" if peer else "")


def _both(pairs: Sequence[Pair], figure: Callable[[Round], float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(figure(full) for full, _ in pairs), tuple(figure(none) for _, none in pairs)
