"""What the page reads, and what it reads of one publication's files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import ValidationError

from contexture.errors import ConfigurationError, DefectError
from contexture.monitoring.alerts import PendingSend, pending_sends
from contexture.monitoring.rows import RunRow
from contexture.operations.page.asking import Asked, asked
from contexture.operations.page.standing import DagFacts, Judged, Standing, judge
from contexture.operations.page.tables import Tables
from contexture.publications import Publication
from contexture.storage.home import Storage
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import Outboxes
from contexture.storage.state import State, StatePointer

# Object stores answer slowly, and to many at once.
_READERS = 8
_UNREADABLE = "its files can not be read. Next: restore them from a backup, or see the how-to on recovering"
_UNKNOWN = "whether its last run failed is not known without the operational tables"
_SAYS_THAT_ALL_IS_WELL = {Standing.OWING, Standing.INCOMPLETE, Standing.WAITING, Standing.NEVER_RUN, Standing.IDLE}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the page's data come from.

    Attributes:
        storage: the home.
        tables: the operational tables.
        publications: the good publication files, by name.
        dags: what Airflow knows of the publications that the reader may see, by name.
        now: the time of reading.
    """

    storage: Storage
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
class Surveyed:
    """A publication as far as its place in the overview depends on it."""

    name: str
    stored: Stored
    latest: RunRow | None
    dag: DagFacts | None
    judged: Judged
    asked: Asked | None = None


def survey(sources: Sources, names: Iterable[str]) -> list[Surveyed]:
    """Looks at each of the publications, several at a time.

    Raises:
        RetriableError: the storage did not answer.
    """
    latest = sources.tables.ask(lambda history: history.latest_runs(), {})
    wanted = list(names)
    with ThreadPoolExecutor(_READERS) as readers:
        found = list(readers.map(lambda name: stored(sources.storage, name), wanted))
    return [_surveyed(sources, name, each, latest.get(name)) for name, each in zip(wanted, found, strict=True)]


def stored(storage: Storage, name: str) -> Stored:
    """What the files of a publication say; a damaged one hides neither the others nor itself."""
    try:
        return Stored(State(storage, name).pointer(), pending_sends(storage, name))
    except (ConfigurationError, DefectError) as error:
        return Stored(damage=str(error))
    except ValidationError:  # which would quote the file
        return Stored(damage=_UNREADABLE)


def manifests(storage: Storage, surveyed: Iterable[Surveyed]) -> list[Manifest | None]:
    """The manifest of what each publication concluded last, several read at a time."""
    with ThreadPoolExecutor(_READERS) as readers:
        return list(readers.map(lambda each: manifest(storage, each.name, each.stored.pointer.outbox), surveyed))


def manifest(storage: Storage, name: str, outbox: str | None) -> Manifest | None:
    """The manifest of an outbox; None when retention has taken it, or it can't be read."""
    if outbox is None:
        return None
    try:
        return Outboxes(storage, name).manifest(outbox)
    except (ConfigurationError, DefectError):
        return None


def _surveyed(sources: Sources, name: str, found: Stored, latest: RunRow | None) -> Surveyed:
    dag = sources.dags.get(name)
    if found.damage:
        return Surveyed(name, found, latest, dag, Judged(Standing.STOPPED, found.damage))
    question = asked(sources.storage, name, sources.publications.get(name), dag, latest)
    judged = judge(found.pointer, latest, found.pending, dag, question.told if question else None)
    return Surveyed(name, found, latest, dag, _as_far_as_known(judged, sources.tables.problem), question)


def _as_far_as_known(judged: Judged, problem: str | None) -> Judged:
    """A run that failed shows in the tables alone: while they are away, files say no more than that nothing waits."""
    if problem is None or judged.standing not in _SAYS_THAT_ALL_IS_WELL:
        return judged
    return Judged(judged.standing, f"{judged.reason}; {_UNKNOWN}" if judged.reason else _UNKNOWN)
