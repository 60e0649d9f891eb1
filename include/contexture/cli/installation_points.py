"""What `contexture doctor` looks at here: storage, publications, tables, connections, ledgers, Airflow."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

from contexture.cli import connections, home
from contexture.cli.airflow import Airflow
from contexture.cli.airflow_access import URL_VARIABLE, AirflowAccess
from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.cli.examination import Found, Point
from contexture.cli.known_publications import known_publications
from contexture.cli.ledger_points import ledger_points
from contexture.cli.operations_status import OperationsReader
from contexture.cli.trial_outcome import Outcome
from contexture.errors import ConfigurationError
from contexture.monitoring.database import DATABASE_VARIABLE, NO_TABLES, database_url, look, unknown_tables
from contexture.operations.pools import POOLS
from contexture.publications import Publication, discover
from contexture.storage.format_versions import check_formats
from contexture.storage.home import HOME_VARIABLE, Storage

_LEAST_FREE_BYTES: Final = 1 << 30
_CLOCK_SECONDS: Final = 10.0


def installation_points(*, try_connections: bool, timeout_seconds: float) -> Iterator[Point]:
    """The points; a connection's point tries it, or only looks whether it is there."""
    yield Point("storage", _storage)
    yield Point("publications", _publications)
    yield Point("formats", _formats)
    yield Point("operational tables", _tables)
    for connection_id, service in _named_connections().items():
        yield Point(
            f"connection {connection_id}",
            _connection(connection_id, service, timeout_seconds if try_connections else None),
        )
    if try_connections:
        yield from ledger_points(known_publications(), timeout_seconds=timeout_seconds)
    yield Point("Airflow", _airflow)


def _storage() -> Found:
    storage = home.open_home()
    said = "" if os.environ.get(HOME_VARIABLE) else f" ({HOME_VARIABLE} is not set)"
    apart = _write_and_read(storage)
    if abs(apart) > _CLOCK_SECONDS:
        way = "behind" if apart < 0 else "ahead of"
        return Found(
            "doubtful",
            f"{storage.root} can be written, and its clock is {abs(apart):.0f} s {way} this machine's",
            "let both follow a time server: retention goes by the times of files",
        )
    if "://" in storage.root:
        return Found("good", f"{storage.root} can be written{said}")
    free = shutil.disk_usage(storage.root).free
    detail = f"{storage.root} can be written, {free / (1 << 30):.1f} GiB free{said}"
    if free < _LEAST_FREE_BYTES:
        return Found("doubtful", detail, "make room, or shorten retention.archive_days")
    return Found("good", detail)


def _write_and_read(storage: Storage) -> float:
    """Does what every run does: a whole file in the place of another, read back, listed, removed.

    Gives the seconds that the storage's clock is ahead of ours; what the writing took is no difference.
    """
    folder, before = f"doctor-{uuid4().hex[:12]}", time.time()
    for content in (b"first", b"second"):
        storage.write(f"{folder}/try", content)
    try:
        if storage.read(f"{folder}/try") != b"second" or storage.files(folder) == []:
            raise ConfigurationError(
                f"{storage.root} does not give back what was just written",
                next_step="use a file system or object store that shows a file once it is written",
            )
        return _apart(storage.written_at(folder).get("try"), before, time.time())
    finally:
        storage.remove(folder)


def _apart(at: datetime | None, before: float, after: float) -> float:
    if at is None:
        return 0.0
    written = at.timestamp()
    return min(written - before, 0.0) + max(written - after, 0.0)


def _publications() -> Found:
    loaded = discover(_folder())
    broken = [each.path.name for each in loaded if each.publication is None]
    if broken:
        return Found("bad", f"{len(broken)} can't be used: {', '.join(broken)}", "run: contexture check")
    if not loaded:
        return Found(
            "doubtful", f"there is none in {_folder()}", f"write one, or set {FOLDER_VARIABLE} as Airflow has it"
        )
    return Found("good", f"{len(loaded)} in {_folder()}")


def _folder() -> Path:
    return Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)


def _formats() -> Found:
    """Looks at what the next runs read first."""
    storage = home.open_home()
    names = home.publications(storage)
    for name in names:
        check_formats(storage, name)
    if not names:
        return Found("good", f"no publication has files in {storage.root} yet")
    return Found("good", f"the files of {len(names)} publications are of this Contexture's formats")


def _tables() -> Found:
    tables = OperationsReader(home.open_home())
    if tables.problem and tables.problem != NO_TABLES:
        return Found(
            "bad", tables.problem, "see CONTEXTURE_DATABASE; runs go on without the tables, but nobody sees them"
        )
    url = database_url(home.open_home().root)
    if url is None:
        return Found(
            "doubtful",
            f"there are none, and never will be: {DATABASE_VARIABLE} is not set, and an object store has no place",
            f"set {DATABASE_VARIABLE} to the URL of a PostgreSQL, as the services of Airflow have it",
        )
    found = look(url)
    if not found.is_known:
        raise unknown_tables(str(found.found))
    return Found("good", tables.address or "not there yet: the first run makes them")


def _named_connections() -> dict[str, str]:
    """Each connection that publications name, with the tenant to ask where it is a context broker."""
    found: dict[str, str] = {}
    for each in known_publications():
        found |= _connections_of(each)
    return dict(sorted(found.items()))


def _connections_of(publication: Publication) -> dict[str, str]:
    named = {publication.publish.connection: ""}
    if publication.source.connection:
        named[publication.source.connection] = publication.source.service or ""
    return named


def _connection(connection_id: str, service: str, timeout_seconds: float | None) -> Callable[[], Found]:
    def look() -> Found:
        if connections.read(connection_id) is None:
            return Found(
                "not looked at",
                f"{connections.variable_of(connection_id)} is not set here",
                "if it is kept in Airflow's database or a secrets backend, test it on the Contexture page",
            )
        if timeout_seconds is None:
            return Found("not looked at", "it is there, and was not tried")
        from contexture.cli.connection_trial import try_by_kind

        return _told(try_by_kind(connection_id, service=service, timeout_seconds=timeout_seconds))

    return look


def _told(outcome: Outcome) -> Found:
    failed = [step for step in outcome.steps if step.passed is False]
    if not failed and outcome.passed:
        return Found("good", f"{outcome.target}: {len(outcome.steps)} steps work")
    detail = "; ".join(f"{step.name}: {step.detail}" for step in failed) or "could not be reached"
    remedy = next((step.remedy for step in failed if step.remedy), "")
    return Found(
        "bad", f"{outcome.target}: {detail}", remedy or f"run: contexture connection test {outcome.connection}"
    )


def _airflow() -> Found:
    if not os.environ.get(URL_VARIABLE):
        return Found("not looked at", f"{URL_VARIABLE} is not set", "set it to look at Airflow's pools and DAGs too")
    airflow = Airflow(AirflowAccess.from_environment())
    missing = sorted(set(POOLS) - airflow.pools())
    if missing:
        return Found(
            "bad",
            f"it has no pools {', '.join(missing)}, and tasks of a missing pool never start",
            "run: contexture pools > pools.json; airflow pools import pools.json",
        )
    paused = airflow.is_paused("resynchronise")
    if paused:
        return Found("doubtful", "the DAG resynchronise is paused", "resume it: it starts what is owed a run")
    return Found("good", "its pools are there, and resynchronise is not paused")
