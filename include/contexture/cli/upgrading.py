"""What `contexture upgrade` finds, what keeps it from beginning, and doing it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contexture.cli import connections, home
from contexture.cli.airflow import Airflow
from contexture.cli.airflow_access import URL_VARIABLE, AirflowAccess
from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.cli.kafka_connections import settings_of
from contexture.errors import ConfigurationError, RetriableError
from contexture.operations.database import HEAD, database_url
from contexture.operations.tables_found import TablesFound, bring_up_tables, later_tables, look
from contexture.outbox.document import LaterFormatError
from contexture.outbox.formats import INBOX, Stored, check_inbox, stored
from contexture.outbox.inbox_entry import FORMAT as INBOX_FORMAT
from contexture.outbox.storage import Storage
from contexture.outbox.upgrading import Step, steps, upgrade
from contexture.publications import Publication, discover

_LEDGER_SECONDS: Final = 10.0
TABLES: Final = "operational tables"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of what was found.

    Attributes:
        publication: whose; empty where it is of all.
        what: the kind of document.
        found: its format or version; empty where it says none.
        current: that of today.
        files: how many documents; None where they are no files.
        todo: what is done about it; empty where nothing need be.
        note: what else is to be said.
    """

    publication: str
    what: str
    found: str
    current: str
    files: int | None = None
    todo: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an upgrade would do.

    Attributes:
        storage: the home.
        documents: of each publication.
        inboxes: how many files wait in the inbox of each.
        tables: the operational tables; None where there is no database.
        ledgers: what the ledgers in Kafka say.
    """

    storage: Storage
    documents: dict[str, tuple[Stored, ...]]
    inboxes: dict[str, int]
    tables: TablesFound | None
    ledgers: tuple[Line, ...] = ()

    @property
    def outdated(self) -> list[str]:
        """The publications of which files are changed."""
        return [name for name, found in self.documents.items() if not all(each.is_current for each in found)]

    @property
    def has_work(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.outdated) or (self.tables is not None and not self.tables.is_current)

    def lines(self) -> Iterator[Line]:
        """Everything that was found, publication by publication."""
        for name, documents in self.documents.items():
            yield from (_line(name, step) for step in steps(documents))
            if self.inboxes[name]:
                yield Line(name, INBOX, str(INBOX_FORMAT), str(INBOX_FORMAT), self.inboxes[name])
            yield from (line for line in self.ledgers if line.publication == name)
        if self.tables is not None:
            todo = "" if self.tables.is_current else "brought up by their steps"
            note = "" if self.tables.found else "not there yet: the first run makes them"
            yield Line("", TABLES, self.tables.found or "", HEAD, todo=todo, note=note)


def plan() -> Plan:
    """Looks at everything, before anything is changed.

    Raises:
        LaterFormatError, ConfigurationError: something was written by a later Contexture.
        RetriableError: storage or database did not answer.
    """
    storage = home.open_home()
    names = home.publications(storage)
    documents = {name: tuple(stored(storage, name)) for name in names}
    url = database_url(storage.root)
    tables = None if url is None else look(url)
    if tables is not None and tables.is_later:
        raise later_tables(str(tables.found))
    inboxes = {name: check_inbox(storage, name) for name in names}
    return Plan(storage, documents, inboxes, tables, tuple(_ledgers(names)))


def refuse_while_running(found: Plan) -> None:
    """Lets nothing be changed while runs of the publications concerned are under way.

    Airflow is asked where it is known (CONTEXTURE_AIRFLOW_URL), else the operational tables.

    Raises:
        ConfigurationError: runs are under way, as far as is known.
        RetriableError: Airflow did not answer.
    """
    concerned = set(found.outdated)
    running = sorted((name, run) for name, run in _running(found) if name in concerned)
    if not running:
        return
    named = ", ".join(f"{name} ({run})" for name, run in running[:5])
    raise ConfigurationError(
        f"runs are under way: {named}{', …' if running[5:] else ''}",
        next_step="let their runs end and pause these publications (a run that is paused on its way stands still: "
        "resume it first); where Airflow is stopped, or a run died without saying so: contexture upgrade --stopped",
    )


def carry_out(found: Plan) -> int:
    """Does it; how many documents were changed.

    Raises:
        RetriableError: storage or database did not answer, or a run was under way; calling it again goes on.
        DefectError: a document is not what it says.
    """
    changed = sum(upgrade(found.storage, name, documents) for name, documents in found.documents.items())
    url = database_url(found.storage.root)
    if url is not None and found.tables is not None and not found.tables.is_current:
        bring_up_tables(url)
    return changed


def _line(name: str, step: Step) -> Line:
    found = "" if step.found is None else str(step.found)
    return Line(name, step.what, found, str(step.current), step.files, step.todo)


def _running(found: Plan) -> Iterator[tuple[str, str]]:
    if os.environ.get(URL_VARIABLE):
        yield from Airflow(AirflowAccess.from_environment()).active_publications()
    elif found.tables is not None:
        yield from found.tables.running


def _ledgers(names: list[str]) -> Iterator[Line]:
    folder = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    loaded = discover(folder) if folder.exists() else ()
    known = {each.publication.name: each.publication for each in loaded if each.publication is not None}
    unanswered: dict[str, str] = {}
    for name in names:
        if name in known and known[name].source.kind != "operations":
            yield _ledger(known[name], unanswered)


def _ledger(publication: Publication, unanswered: dict[str, str]) -> Line:
    """What a ledger says; `unanswered` has the connections that gave no answer, which are waited for once."""
    from contexture.kafka import Ledger, SenderNames
    from contexture.kafka.ledger_entry import FORMAT
    from contexture.kafka.patience import Patience

    what, current, connection = "ledger in Kafka", str(FORMAT), publication.publish.connection
    if connections.read(connection) is None:
        unanswered[connection] = f"not looked at: {connections.variable_of(connection)} is not set here"
    if connection in unanswered:
        return Line(publication.name, what, "", current, note=unanswered[connection])
    try:
        settings = settings_of(connection)
        ledger = Ledger(settings, SenderNames(publication.name), patience=Patience(_LEDGER_SECONDS))
        rows = list(ledger.entries().values())
    except LaterFormatError:
        raise
    except (ConfigurationError, RetriableError) as error:
        unanswered[connection] = f"not looked at: {error.message}"
        return Line(publication.name, what, "", current, note=unanswered[connection])
    found = str(min(entry.format for entry in rows)) if rows else ""
    note = "" if rows else "nothing was sent yet"
    return Line(publication.name, what, found, current, note=note)
