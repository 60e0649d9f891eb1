"""Memory of the processes of Celery workers, and connections of all parts, while a round runs that isn't timed."""

from __future__ import annotations

from tools.bench.engines.connections import ConnectionWatch
from tools.bench.engines.rounds import Rounds
from tools.bench.engines.spark import BENCH
from tools.bench.engines.watching import MemoryWatch
from tools.bench.measures import Measure
from tools.cluster.moments import memory_mib

WORKER = "a Celery worker's own processes"
SUPERVISOR = "a task's supervisor"
TASK = "a task"
DRIVER_JVM = "the JVM of a stage's driver"
DRIVER_PYTHON = "the Python of a stage's driver"
_CELERY = "a Celery worker"


def attended(rounds: Rounds) -> list[Measure]:
    """The rows about what a worker holds."""
    workers = [worker.pid for worker in rounds.platform.workers.running.values()]
    rounds.setting.progress("memory and connections")
    resting = tuple(map(memory_mib, workers))
    watch = ConnectionWatch(rounds.platform, rounds.databases)
    with MemoryWatch(workers, kind_of) as memory, watch:
        rounds.taken("full")
    return [
        Measure(BENCH, "Airflow: memory of a Celery worker of two slots at rest", "MiB", resting),
        *(
            Measure(BENCH, f"Airflow: peak memory of one process: {kind}", "MiB", (mib,))
            for kind, mib in sorted(memory.largest.items())
        ),
        *_connections(watch),
    ]


def kind_of(command: str) -> str | None:
    """What a process below a Celery worker is, by its title or command line."""
    for word, kind in (
        ("airflow supervisor", SUPERVISOR),
        ("airflow worker -- ", TASK),
        ("deploy.SparkSubmit", DRIVER_JVM),
        ("spark_jobs/stage.py", DRIVER_PYTHON),
        ("celery", WORKER),
    ):
        if word in command:
            return kind
    return None


def by_part(most: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Returns connections by server and owner; of the Celery workers only the one with most connections is counted."""
    found: dict[tuple[str, str], int] = {}
    for (server, owner), number in most.items():
        part = _CELERY if owner.startswith("worker-") else owner
        found[server, part] = max(found.get((server, part), 0), number)
    return found


def _connections(watch: ConnectionWatch) -> list[Measure]:
    rows = [
        Measure(BENCH, f"{_server_name(server)}: connections at most of {owner}", "connections", (number,))
        for (server, owner), number in sorted(by_part(watch.most).items())
    ]
    everything = Measure(BENCH, "PostgreSQL: connections at once, all", "connections", (watch.together,))
    return [*rows, everything]


def _server_name(server: str) -> str:
    return "Redis" if server == "redis" else f"PostgreSQL, database {server}"
