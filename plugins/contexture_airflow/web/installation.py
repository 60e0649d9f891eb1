"""What the page reads of this installation: publication files, the home, the operational tables, Airflow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import BoundedSemaphore, Lock
from typing import Any

from contexture.errors import ConfigurationError, RetriableError
from contexture.monitoring import RunTables
from contexture.monitoring.database import NO_TABLES
from contexture.monitoring.rows import InterventionRow
from contexture.operations.actions.interventions import record_intervention
from contexture.operations.actions.reachability import ReachabilityCache
from contexture.operations.status.sources import Sources, Tables
from contexture.publications import LoadedPublication, Publication, discover
from contexture.storage.home import Home
from contexture_airflow.catalogue import stamps
from contexture_airflow.connections.settings import open_home
from contexture_airflow.settings import publications_folder
from contexture_airflow.web.airflow_database import AirflowFacts

log = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


class OutsideCalls:
    """Limits how many requests wait for Kafka or a source at once, because each holds a thread of the API server.

    Args:
        most: as many at once; who comes then is refused immediately.
    """

    def __init__(self, most: int = 2) -> None:
        self._free = BoundedSemaphore(most)

    def begin(self) -> None:
        """Begins a call.

        Raises:
            RetriableError: as many as there may be are being made.
        """
        if not self._free.acquire(blocking=False):
            raise RetriableError(
                "other users of the page are waiting for brokers or sources now", next_step="retry in some seconds"
            )

    def end(self) -> None:
        """Ends a call, also one that another thread began."""
        self._free.release()

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *raised: object) -> None:
        self.end()


@dataclass(frozen=True, slots=True)
class PublicationFiles:
    """The publication files as they were last read: the good ones by name, and the names of the others."""

    publications: Mapping[str, Publication]
    bad: tuple[str, ...]


class Installation:
    """Everything the page reads from, kept between requests.

    Args:
        airflow: whom to ask about users and DAGs.
        clock: the time of reading.

    Attributes:
        outside_calls: the limit of requests that wait for Kafka or a source.
        reachability: whether connections respond.
    """

    def __init__(self, airflow: AirflowFacts, clock: Callable[[], datetime] = _now) -> None:
        self.airflow = airflow
        self.outside_calls = OutsideCalls()
        self.reachability = ReachabilityCache()
        self._clock = clock
        self._lock = Lock()
        self._stamps: Mapping[str, tuple[int, int]] | None = None
        self._files = PublicationFiles({}, ())
        self._store: RunTables | None = None
        self._opened: Home | None = None

    def sources(self, user: Any) -> Sources:
        """What a user may see.

        Raises:
            ConfigurationError: the home or the address of the tables is wrong.
            RetriableError: the storage did not answer.
        """
        home, files = self._home(), self.files()
        known = {*files.publications, *home.folders("")}
        dags = {name: facts for name, facts in self.airflow.dags(user).items() if name in known}
        return Sources(home, self._tables(home), files.publications, dags, self._clock())

    def record_action(self, row: InterventionRow) -> None:
        """Stores what a person did; where the tables are away, only the log of the API server has it."""
        try:
            store = self._store_of(self._home())
            if store is not None:
                record_intervention(store, row)
        except (ConfigurationError, RetriableError) as error:
            log.warning("could not store in the operational tables what %r did: %s", row.who, error)

    def files(self) -> PublicationFiles:
        """The publication files; read again when one has changed, because reading many takes a second."""
        with self._lock:
            try:
                found = stamps()
                if found != self._stamps:
                    self._files, self._stamps = _read(discover(publications_folder())), found
            except (ConfigurationError, OSError):
                # There is no such folder: nothing is configured, and what ran before is still shown.
                self._files, self._stamps = PublicationFiles({}, ()), None
            return self._files

    def _home(self) -> Home:
        if self._opened is None:
            self._opened = open_home()
        return self._opened

    def _tables(self, home: Home) -> Tables:
        try:
            store = self._store_of(home)
            return Tables(store, None if store else NO_TABLES)
        except ConfigurationError as error:
            return Tables(None, str(error))

    def _store_of(self, home: Home) -> RunTables | None:
        with self._lock:
            self._store = self._store or RunTables.of_home(home.root)
            return self._store


def _read(loaded: list[LoadedPublication]) -> PublicationFiles:
    good = {each.publication.name: each.publication for each in loaded if each.publication is not None}
    return PublicationFiles(good, tuple(each.path.name for each in loaded if each.publication is None))
