"""What the page reads: files of the home and operational tables, a page of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from contexture.errors import ConfigurationError, DefectError, RetriableError
from contexture.monitoring.alerts import PendingSend, pending_sends
from contexture.monitoring.history import History
from contexture.monitoring.rows import RunRow
from contexture.operations.status.health import (
    AnsweredQuestion,
    DagFacts,
    HealthAssessment,
    PublicationHealth,
    assess_health,
    find_open_question,
)
from contexture.publications import Publication
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationStore
from contexture.storage.state import StatePointer

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Paging:
    """Which page of a list.

    Attributes:
        number: from 1.
        size: entries on a page.
        total: entries of the list.
    """

    number: int
    total: int
    size: int = PAGE_SIZE

    @classmethod
    def of(cls, asked: int, total: int, size: int = PAGE_SIZE) -> Paging:
        """The page that was asked for, or the nearest one there is."""
        last = max(1, -(-total // size))
        return cls(number=min(max(asked, 1), last), total=total, size=size)

    @property
    def pages(self) -> int:
        """How many pages there are: at least one."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """How many entries come before the page."""
        return (self.number - 1) * self.size

    @property
    def end(self) -> int:
        """How many entries come before the next page."""
        return min(self.offset + self.size, self.total)


_Answer = TypeVar("_Answer")
_Otherwise = TypeVar("_Otherwise")


class Tables:
    """Asks the tables until they fail once; `problem` says then what is wrong.

    Args:
        history: the tables; None when there are none.
        problem: why there are none, if something is wrong.
    """

    def __init__(self, history: History | None, problem: str | None = None) -> None:
        self._history = history if history is not None and history.is_there else None
        self.problem = problem

    def ask(self, question: Callable[[History], _Answer], otherwise: _Otherwise) -> _Answer | _Otherwise:
        """Returns what a query finds, or `otherwise` when there are no tables."""
        if self._history is None:
            return otherwise
        try:
            return question(self._history)
        except (RetriableError, ConfigurationError) as error:
            self._history, self.problem = None, str(error)
            return otherwise

    @contextmanager
    def one_connection(self) -> Iterator[None]:
        """Within the block, this thread's questions share a connection: for pages that ask much."""
        with ExitStack() as stack:
            self.ask(lambda history: stack.enter_context(history.one_connection()), None)
            yield


# Object stores answer slowly, and to many at once.
_READERS = 8
_UNREADABLE = "its files cannot be read. Next: restore them from a backup, or see the how-to on recovering"
_UNKNOWN = "whether its last run failed is not known without the operational tables"
_SAYS_THAT_ALL_IS_WELL = {
    PublicationHealth.RESYNC_REQUIRED,
    PublicationHealth.INCOMPLETE,
    PublicationHealth.WAITING,
    PublicationHealth.NEVER_RUN,
    PublicationHealth.IDLE,
}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the page's data come from.

    Attributes:
        home: the files of all publications.
        tables: the operational tables.
        publications: the good publication files, by name.
        dags: what Airflow knows of the publications that the reader may see, by name.
        now: the time of reading.
    """

    home: Home
    tables: Tables
    publications: Mapping[str, Publication]
    dags: Mapping[str, DagFacts]
    now: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """What the files of one publication say; `damage`: why they say nothing, and what to do."""

    pointer: StatePointer = field(default_factory=StatePointer)
    pending: tuple[PendingSend, ...] = ()
    damage: str = ""


@dataclass(frozen=True, slots=True)
class PublicationFacts:
    """A publication as far as its place in the overview depends on it."""

    name: str
    stored: Stored
    latest: RunRow | None
    dag: DagFacts | None
    judged: HealthAssessment
    asked: AnsweredQuestion | None = None


def collect_facts(sources: Sources, names: Iterable[str]) -> list[PublicationFacts]:
    """Looks at each of the publications, several at a time.

    Raises:
        RetriableError: the storage did not answer.
    """
    latest = sources.tables.ask(lambda history: history.latest_runs(), {})
    wanted = list(names)
    with ThreadPoolExecutor(_READERS) as readers:
        found = list(readers.map(lambda name: stored(sources.home.publication(name)), wanted))
    return [_surveyed(sources, name, each, latest.get(name)) for name, each in zip(wanted, found, strict=True)]


def stored(store: PublicationStore) -> Stored:
    """What the files of a publication say; a damaged one hides neither the others nor itself."""
    try:
        return Stored(store.state.pointer(), pending_sends(store))
    except (ConfigurationError, DefectError) as error:
        return Stored(damage=str(error))
    except ValidationError:  # which would quote the file
        return Stored(damage=_UNREADABLE)


def manifests(home: Home, surveyed: Iterable[PublicationFacts]) -> list[Manifest | None]:
    """The manifest of what each publication concluded last, several read at a time."""
    with ThreadPoolExecutor(_READERS) as readers:
        return list(
            readers.map(lambda each: manifest(home.publication(each.name), each.stored.pointer.outbox), surveyed)
        )


def manifest(store: PublicationStore, outbox: str | None) -> Manifest | None:
    """The manifest of an outbox; None when retention has taken it, or it can't be read."""
    if outbox is None:
        return None
    try:
        return store.outboxes.manifest(outbox)
    except (ConfigurationError, DefectError):
        return None


def _surveyed(sources: Sources, name: str, found: Stored, latest: RunRow | None) -> PublicationFacts:
    dag = sources.dags.get(name)
    if found.damage:
        return PublicationFacts(name, found, latest, dag, HealthAssessment(PublicationHealth.STOPPED, found.damage))
    question = find_open_question(sources.home.publication(name), sources.publications.get(name), dag, latest)
    judged = assess_health(found.pointer, latest, found.pending, dag, question.sentence if question else None)
    return PublicationFacts(name, found, latest, dag, _as_far_as_known(judged, sources.tables.problem), question)


def _as_far_as_known(judged: HealthAssessment, problem: str | None) -> HealthAssessment:
    """A run that failed shows in the tables alone: while they are away, files say no more than that nothing waits."""
    if problem is None or judged.health not in _SAYS_THAT_ALL_IS_WELL:
        return judged
    return HealthAssessment(judged.health, f"{judged.reason}; {_UNKNOWN}" if judged.reason else _UNKNOWN)
