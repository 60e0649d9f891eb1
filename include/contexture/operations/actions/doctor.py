"""Checks that everything a run needs is installed and reachable: the machine, the installation, the ledgers."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from typing import TYPE_CHECKING, Final, Literal
from uuid import uuid4

from packaging.requirements import Requirement

from contexture.errors import ConfigurationError, ContextureError
from contexture.monitoring.database import DATABASE_VARIABLE, NO_TABLES, database_url, inspect_schema, unknown_tables
from contexture.operations import environment
from contexture.operations.actions.source_check import CheckOutcome
from contexture.operations.airflow_client import URL_VARIABLE, AirflowClient, AirflowCredentials
from contexture.operations.environment import FOLDER_VARIABLE, known_publications, publications_folder
from contexture.operations.pools import POOLS
from contexture.operations.status.status import OperationsReader
from contexture.publications import Publication, discover
from contexture.storage.documents import StoredDocument
from contexture.storage.file_tree import HOME_VARIABLE
from contexture.storage.home import Home

if TYPE_CHECKING:
    from contexture.sending.ledger_copies import LedgerCopies

PointStatus = Literal["ok", "warning", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class PointOutcome:
    """One point.

    Attributes:
        verdict: `warning` works, but not as it should; `error` stops runs.
        detail: what is there, without secrets.
        remedy: what to do; empty where nothing need be done.
    """

    verdict: PointStatus
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """Something to look at."""

    name: str
    look: Callable[[], PointOutcome]


class PointResult(StoredDocument):
    """A point that was looked at, and the seconds it took."""

    name: str
    verdict: PointStatus
    detail: str
    remedy: str
    seconds: float


class InstallationReport(StoredDocument):
    """All points, in order."""

    points: tuple[PointResult, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing that was found stops runs."""
        return not any(point.verdict == "error" for point in self.points)


def run_checks(points: Iterable[Point]) -> Iterator[PointResult]:
    """Looks at one point after the other; an error of ours is a bad one, with its next step as the remedy."""
    for point in points:
        started = time.monotonic()
        found = _looked(point)
        yield PointResult(
            name=point.name,
            verdict=found.verdict,
            detail=found.detail,
            remedy=found.remedy,
            seconds=time.monotonic() - started,
        )


def _looked(point: Point) -> PointOutcome:
    try:
        return point.look()
    except ContextureError as error:
        return PointOutcome("error", error.message, error.next_step)


CopiesOf = Callable[[Publication], "LedgerCopies | None"]


def ledger_points(
    publications: Iterable[Publication], *, timeout_seconds: float, copies_of: CopiesOf | None = None
) -> Iterator[Point]:
    """One point for each Kafka connection that is set here.

    Args:
        publications: whose ledgers.
        timeout_seconds: how long brokers are waited for.
        copies_of: asks the brokers about a publication's ledger; for tests.
    """
    users: dict[str, list[Publication]] = {}
    for each in publications:
        users.setdefault(each.publish.connection, []).append(each)
    asked = copies_of or (lambda publication: _copies_of(publication, timeout_seconds))
    for connection, published in sorted(users.items()):
        if environment.read(connection) is not None:
            yield Point(f"ledgers over {connection}", _looked_at(published, asked))


def _looked_at(publications: list[Publication], copies_of: CopiesOf) -> Callable[[], PointOutcome]:
    def look() -> PointOutcome:
        try:
            found = [copies for each in publications if (copies := copies_of(each)) is not None]
        except ContextureError as error:
            # The connection's own point says what is wrong with it.
            return PointOutcome("skipped", error.message)
        weak = [copies for copies in found if copies.weakness]
        if weak:
            return PointOutcome(
                "warning", "; ".join(each.weakness for each in weak), "; ".join(each.remedy for each in weak)
            )
        return PointOutcome("ok", f"{len(found)} ledgers have as many replicas as they need or the cluster can give")

    return look


def _copies_of(publication: Publication, timeout_seconds: float) -> LedgerCopies | None:
    from contexture.kafka.broker_wait import BrokerWait
    from contexture.operations.actions.connection_check import settings_of
    from contexture.sending import Ledger, SenderNames

    names = SenderNames(publication.name, publication.publish.transactional_id_prefix)
    return Ledger(settings_of(publication.publish.connection), names, broker_wait=BrokerWait(timeout_seconds)).copies()


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


def _storage() -> PointOutcome:
    storage = environment.open_home()
    said = "" if os.environ.get(HOME_VARIABLE) else f" ({HOME_VARIABLE} is not set)"
    apart = _write_and_read(storage)
    if abs(apart) > _CLOCK_SECONDS:
        way = "behind" if apart < 0 else "ahead of"
        return PointOutcome(
            "warning",
            f"{storage.root} can be written, and its clock is {abs(apart):.0f} s {way} this machine's",
            "synchronise both with a time server: retention depends on the times of files",
        )
    if "://" in storage.root:
        return PointOutcome("ok", f"{storage.root} can be written{said}")
    free = shutil.disk_usage(storage.root).free
    detail = f"{storage.root} can be written, {free / (1 << 30):.1f} GiB free{said}"
    if free < _LEAST_FREE_BYTES:
        return PointOutcome("warning", detail, "make room, or shorten retention.archive_days")
    return PointOutcome("ok", detail)


def _write_and_read(storage: Home) -> float:
    """Does what every run does: a whole file in the place of another, read back, listed, removed.

    Gives the seconds that the storage's clock is ahead of ours; what the writing took is no difference.
    """
    folder, before = f"doctor-{uuid4().hex[:12]}", time.time()
    for content in (b"first", b"second"):
        storage.write(f"{folder}/try", content)
    try:
        if storage.read(f"{folder}/try") != b"second" or storage.files(folder) == []:
            raise ConfigurationError(
                f"{storage.root} does not return what was just written",
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


def _publications() -> PointOutcome:
    loaded = discover(publications_folder())
    broken = [each.path.name for each in loaded if each.publication is None]
    if broken:
        return PointOutcome("error", f"{len(broken)} cannot be used: {', '.join(broken)}", "run: contexture check")
    if not loaded:
        return PointOutcome(
            "warning",
            f"there is none in {publications_folder()}",
            f"write one, or set {FOLDER_VARIABLE} as Airflow has it",
        )
    return PointOutcome("ok", f"{len(loaded)} in {publications_folder()}")


def _formats() -> PointOutcome:
    """Looks at what the next runs read first."""
    storage = environment.open_home()
    names = environment.publications(storage)
    for name in names:
        storage.publication(name).check_formats()
    if not names:
        return PointOutcome("ok", f"no publication has files in {storage.root} yet")
    return PointOutcome("ok", f"the files of {len(names)} publications are of this Contexture's formats")


def _tables() -> PointOutcome:
    tables = OperationsReader(environment.open_home())
    if tables.problem and tables.problem != NO_TABLES:
        return PointOutcome(
            "error",
            tables.problem,
            "check CONTEXTURE_DATABASE; runs continue without the tables, but no page shows them",
        )
    url = database_url(environment.open_home().root)
    if url is None:
        return PointOutcome(
            "warning",
            f"there are none: {DATABASE_VARIABLE} is not set, and an object store cannot hold them",
            f"set {DATABASE_VARIABLE} to the URL of a PostgreSQL, as the services of Airflow have it",
        )
    found = inspect_schema(url)
    if not found.is_known:
        raise unknown_tables(str(found.found))
    return PointOutcome("ok", tables.address or "not created yet: the first run creates them")


def _named_connections() -> dict[str, str]:
    """Each connection that publications name, with the tenant to ask where it is a context broker."""
    found: dict[str, str] = {}
    for each in known_publications():
        found |= _connections_of(each)
    return dict(sorted(found.items()))


def _connections_of(publication: Publication) -> dict[str, str]:
    named = {publication.publish.connection: ""}
    if publication.source.connection:
        named[publication.source.connection] = publication.source.tenant
    return named


def _connection(connection_id: str, service: str, timeout_seconds: float | None) -> Callable[[], PointOutcome]:
    def look() -> PointOutcome:
        if environment.read(connection_id) is None:
            return PointOutcome(
                "skipped",
                f"{environment.variable_of(connection_id)} is not set here",
                "if it is stored in Airflow's database or a secrets backend, test it on the Contexture page",
            )
        if timeout_seconds is None:
            return PointOutcome("skipped", "it exists, and was not tested")
        from contexture.operations.actions.connection_check import check_connection

        return _result_of(check_connection(connection_id, service=service, timeout_seconds=timeout_seconds))

    return look


def _result_of(outcome: CheckOutcome) -> PointOutcome:
    failed = [step for step in outcome.steps if step.passed is False]
    if not failed and outcome.passed:
        return PointOutcome("ok", f"{outcome.target}: {len(outcome.steps)} steps work")
    detail = "; ".join(f"{step.name}: {step.detail}" for step in failed) or "could not be reached"
    remedy = next((step.remedy for step in failed if step.remedy), "")
    return PointOutcome(
        "error", f"{outcome.target}: {detail}", remedy or f"run: contexture connection test {outcome.connection}"
    )


def _airflow() -> PointOutcome:
    if not os.environ.get(URL_VARIABLE):
        return PointOutcome("skipped", f"{URL_VARIABLE} is not set", "set it to check Airflow's pools and DAGs too")
    airflow = AirflowClient(AirflowCredentials.from_environment())
    missing = sorted(set(POOLS) - airflow.pools())
    if missing:
        return PointOutcome(
            "error",
            f"it has no pools {', '.join(missing)}, and tasks of a missing pool never start",
            "run: contexture pools > pools.json; airflow pools import pools.json",
        )
    paused = airflow.is_paused("resynchronise")
    if paused:
        return PointOutcome("warning", "the DAG resynchronise is paused", "resume it: it starts the runs that are due")
    return PointOutcome("ok", "its pools are there, and resynchronise is not paused")


_OLDEST, _NEWEST = (3, 11), (3, 13)

_FEWEST_FILES: Final = 4096
"""A common default of 1,024 is soon used up by a broker that keeps files open for every partition."""

_CLOCK_UNKNOWN: Final = 5
"""What Linux answers (TIME_ERROR) where nothing keeps its clock right."""

# They replace files of pyspark's, or bring a version of it that doesn't fit.
_IN_THE_WAY: Final = ("airflow-provider-great-expectations", "pyspark-connect")


def machine_points() -> tuple[Point, ...]:
    """The points, in the order in which one thing needs another."""
    return (
        Point("Python", _python),
        Point("packages", _packages),
        Point("Java", _java),
        Point("Python of Spark", _spark_python),
        Point("open files", _open_files),
        Point("ports", _ports),
        Point("clock", _clock),
        Point("byte code", _byte_code),
    )


def _python() -> PointOutcome:
    detail = f"{platform.python_version()} ({sys.executable})"
    if _OLDEST <= sys.version_info[:2] <= _NEWEST:
        return PointOutcome("ok", detail)
    return PointOutcome("error", detail, "install with Python 3.11, 3.12 or 3.13")


def _packages() -> PointOutcome:
    wrong = [*_unmet(metadata.requires("contexture") or ()), *_in_the_way()]
    if wrong:
        return PointOutcome(
            "error", "; ".join(wrong), "install again from uv.lock (`make install`), into an environment of its own"
        )
    shown = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("apache-airflow", "pyspark", "great-expectations")
    )
    return PointOutcome("ok", f"Contexture {metadata.version('contexture')}, {shown}")


def _unmet(requirements: list[str] | tuple[()]) -> Iterator[str]:
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield f"{requirement.name} is missing"
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            yield f"{requirement.name} is {version}, not {requirement.specifier}"


def _in_the_way() -> Iterator[str]:
    installed = {(distribution.name or "").lower() for distribution in metadata.distributions()}
    yield from (f"{name} is installed and is not compatible" for name in _IN_THE_WAY if name in installed)


def _java() -> PointOutcome:
    from contexture.java.runtime import find_java

    found = find_java()
    return PointOutcome("ok", f"{found.version}, from {found.origin} ({found.home})")


def _spark_python() -> PointOutcome:
    given = os.environ.get("PYSPARK_PYTHON")
    if given is None or os.path.realpath(given) == os.path.realpath(sys.executable):
        return PointOutcome("ok", "this one")
    return PointOutcome(
        "warning",
        f"PYSPARK_PYTHON is {given}",
        "leave it out, unless the Python there has the same minor version and the same packages",
    )


def _open_files() -> PointOutcome:
    limit, highest = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY or limit >= _FEWEST_FILES:
        return PointOutcome("ok", f"{limit} at once")
    return PointOutcome(
        "warning",
        f"{limit} at once (may be raised to {highest})",
        f"raise it to {_FEWEST_FILES} or more (`ulimit -n`, LimitNOFILE of the service) for Airflow and Kafka",
    )


def _ports() -> PointOutcome:
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            with socket.create_connection(listener.getsockname(), timeout=2):
                return PointOutcome("ok", "this machine can listen on 127.0.0.1, and reach itself")
    except OSError as error:
        return PointOutcome(
            "error",
            f"this machine cannot reach itself on 127.0.0.1: {error.strerror or type(error).__name__}",
            "allow processes to bind and reach 127.0.0.1: Spark's driver and its workers communicate there",
        )


def _clock() -> PointOutcome:
    state = clock_state()
    if state is None:
        return PointOutcome("skipped", "this system does not report whether its clock is synchronised")
    if state == _CLOCK_UNKNOWN:
        return PointOutcome(
            "warning",
            "this machine's clock is not synchronised, as its system reports",
            "synchronise it with a time server (chrony, systemd-timesyncd): certificates, tokens and retention depend "
            "on it",
        )
    return PointOutcome("ok", "it is synchronised with a time server")


def clock_state() -> int | None:
    """What Linux knows of its clock, in a container of the host's; None where it can't be asked."""
    try:
        # Nothing is set: the first member, which says what is to be changed, is 0.
        state = int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512)))
    except (OSError, AttributeError):
        return None
    return state if state >= 0 else None


def _byte_code() -> PointOutcome:
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return PointOutcome(
            "warning",
            "PYTHONDONTWRITEBYTECODE is set",
            "unset it: every task is a process, and would compile Airflow and Spark again",
        )
    return PointOutcome("ok", "is kept")
