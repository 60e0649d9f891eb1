"""How many connections each part of a platform has to PostgreSQL and Redis, as these see them, at most."""

from __future__ import annotations

import psutil

from tools.bench.engines.counted_platform import CountedPlatform
from tools.bench.engines.database import Databases, by_owner, queue_clients
from tools.bench.repeated_look import RepeatedLook
from tools.cluster.moments import descendants

_SECONDS = 2.0


class ConnectionWatch(RepeatedLook):
    """Looks now and then while the block runs.

    Attributes:
        most: connections at most, by what they lead to (a database's name, or `redis`) and who has them.
        together: of all to PostgreSQL, at most.
    """

    def __init__(self, platform: CountedPlatform, databases: Databases) -> None:
        super().__init__(_SECONDS)
        self.most: dict[tuple[str, str], int] = {}
        self.together = 0
        self._platform = platform
        self._databases = databases

    def look(self) -> None:
        """See `RepeatedLook`."""
        clients = self._databases.clients()
        queued = queue_clients(self._platform.redis.url)
        owners = self._owners()
        self.together = max(self.together, len(clients))
        for database in {name for name, _ in clients}:
            self._note(database, by_owner((port for name, port in clients if name == database), owners))
        self._note("redis", by_owner(queued, owners))

    def _note(self, server: str, seen: dict[str, int]) -> None:
        for owner, number in seen.items():
            self.most[server, owner] = max(self.most.get((server, owner), 0), number)

    def _owners(self) -> dict[int, str]:
        """Who has the local ports of this machine: each Celery worker by its name, and the other parts."""
        roots = {name: (worker.pid,) for name, worker in self._platform.workers.running.items()}
        parts = {name: pids for name, pids in self._platform.parts.items() if not name.startswith("Celery")}
        processes = {
            process: name for name, pids in (parts | roots).items() for pid in pids for process in descendants(pid)
        }
        found = psutil.net_connections("tcp")
        return {each.laddr.port: processes[each.pid] for each in found if each.laddr and each.pid in processes}
