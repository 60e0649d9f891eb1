"""The queries of a read, run by Spark's tasks: they return small rows, and write bodies to files of their own."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from contexture.errors import ContextureError, RetriableError, from_dict
from contexture.sources.http.errors import ReplyTooLargeError
from contexture.sources.sdmx import Artefact, Format, StructureMessageError, Urn, split
from contexture.sources.sdmx.formats import named_in, same_artefact
from contexture.sources.sdmx.registry import (
    Registry,
    RegistryConnection,
    Reply,
    StructureQuery,
    open_registry,
    read_first_supported,
    read_one_in,
)
from contexture.storage.folder import StoredFolder
from spark_jobs.session import to_contexture_error
from spark_jobs.structures.landing import LandingFile, landing_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW_BITS = 24
"""An ordinal has room for 2 to the power of this many rows of one query."""

ResultKind = Literal["landed", "other", "there", "gone", "inexpressible", "file"]
"""The kind of a task's result.

- `landed`: the structure is in the task's file.
- `other`: a reply contained the structure, which was not wanted.
- `there`, `gone`: the registry has the structure, or reports that it does not.
- `inexpressible`: the registry has the structure, but cannot write it in the format.
- `file`: the name of a file, its rows (`number`) and its SHA-256 (`detail`).
"""


@dataclass(frozen=True, slots=True)
class RowPosition:
    """The position that the rows of a reply have in landing.

    Attributes:
        number: of the query, which is the upper part of the ordinals of its rows.
        transaction, at: id and time of the registry's transaction that the rows belong to.
    """

    number: int
    transaction: int | None = None
    at: datetime | None = None

    def ordinal(self, row: int = 0) -> int:
        """Returns the ordinal of a row of the reply."""
        return (self.number << ROW_BITS) + row


@dataclass(frozen=True, slots=True)
class BulkQuery:
    """A bounded query for many structures, of which the wanted ones are landed."""

    position: RowPosition
    selection: StructureQuery


@dataclass(frozen=True, slots=True)
class SingleQuery:
    """A query for one structure.

    Attributes:
        as_of: the time whose content is wanted; None reads the present content.
        lands: False checks only whether the registry has the structure.
    """

    position: RowPosition
    urn: str
    as_of: datetime | None = None
    lands: bool = True


TaskQuery = BulkQuery | SingleQuery


@dataclass(frozen=True, slots=True)
class TaskShare:
    """The queries that one task runs in order, and the name of the file that it writes."""

    file: str
    queries: tuple[TaskQuery, ...]


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One result of a task; `number` is that of the query, except for files."""

    kind: ResultKind
    urn: str = ""
    number: int = 0
    detail: str | None = None


def share_queries(queries: Sequence[TaskQuery], readers: int, names: Sequence[str]) -> tuple[TaskShare, ...]:
    """Distributes the queries in turn over as many tasks as may read, so that each task has long and short replies."""
    tasks = min(readers, len(queries))
    return tuple(TaskShare(names[task], tuple(queries[task::tasks])) for task in range(tasks))


_ATTEMPTS = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The settings that all tasks of a read share.

    Attributes:
        connection, flavour: of the registry; a known flavour is not detected again.
        media_type: the format that structures are read in.
        splits: whether replies are split; otherwise each holds one structure and is landed as it is.
        others: media types for structures that the registry does not write in the first one; they are converted later.
        target: the format that these are converted into, and whose names they are published by.
        landing: the folder of the files.
        wanted: names of the structures that are landed from replies with many structures.
        pause_seconds: between two queries of a task.
        deadline_seconds: how long a task may read.
        opening: opens the registry.
    """

    connection: RegistryConnection
    flavour: str
    media_type: str
    splits: bool
    landing: StoredFolder
    others: tuple[str, ...] = ()
    target: Format | None = None
    wanted: frozenset[str] = frozenset()
    pause_seconds: float = 0.0
    deadline_seconds: float = 3600.0
    opening: Callable[..., Registry] = open_registry

    @property
    def forms(self) -> tuple[str, ...]:
        """All media types in which structures are read, the wanted one first."""
        return (self.media_type, *self.others)

    def named(self, urn: str) -> str:
        """Returns the URN that a structure is published by."""
        return named_in(urn, self.target) if self.target else urn


def read_share(task: ReadTask, share: TaskShare) -> list[TaskResult]:
    """Runs the queries of a task, and writes its file.

    Raises:
        ContextureError: the registry or the storage failed, or the deadline has passed. Then there is no file.
    """
    with (
        tempfile.TemporaryDirectory(prefix="contexture-") as scratch,
        task.opening(task.connection, flavour=task.flavour) as registry,
        landing_file(task.landing, share.file) as file,
    ):
        reader = _Reader(task, registry, Path(scratch) / "reply", file)
        for number, query in enumerate(share.queries):
            reader.wait(first=number == 0)
            reader.run(query)
    return [*reader.results, TaskResult("file", share.file, file.rows, file.sha256)]


class _Reader:
    """A reader that runs one query at a time, with the reply in a file and one structure in memory."""

    def __init__(self, task: ReadTask, registry: Registry, into: Path, file: LandingFile) -> None:
        self._task = task
        self._registry = registry
        self._into = into
        self._file = file
        self._ends = time.monotonic() + task.deadline_seconds
        self.results: list[TaskResult] = []

    def wait(self, *, first: bool) -> None:
        """Waits between two queries, and checks the deadline."""
        if not first and self._task.pause_seconds:
            time.sleep(self._task.pause_seconds)
        if time.monotonic() > self._ends:
            raise RetriableError(
                f"reading {self._registry.address} takes longer than {self._task.deadline_seconds:g} s",
                next_step="increase source.walk_deadline_seconds, or source.parallel_readers",
            )

    def run(self, query: TaskQuery) -> None:
        """Runs one query, and adds its results."""
        if isinstance(query, BulkQuery):
            self._run_bulk(query)
        else:
            self._run_single(query)

    def _run_bulk(self, query: BulkQuery) -> None:
        try:
            reply = read_first_supported(self._registry, self._task.forms, query.selection, self._into)
        except ReplyTooLargeError:
            _log.warning("the reply to %s is too large: reading its structures one by one", query.selection)
            return
        # A structure that a bulk reply lacks is queried singly, and only that reply is trusted.
        if reply is None:
            return
        try:
            self._land_all(query, reply)
        except StructureMessageError as error:
            _log.warning("the reply to %s ended early: %s", query.selection, error)

    def _land_all(self, query: BulkQuery, reply: Reply) -> None:
        with reply.path.open("rb") as stream:
            for row, artefact in enumerate(split(stream, reply.media_type)):
                if artefact.urn is None or same_artefact(artefact.urn) in self._task.wanted:
                    self._land(artefact, query.position, reply, row)
                else:
                    self._add_result("other", artefact.urn, query.position)

    def _run_single(self, query: SingleQuery) -> None:
        for attempt in range(_ATTEMPTS):
            if self._attempt(query, is_last=attempt == _ATTEMPTS - 1):
                return

    def _attempt(self, query: SingleQuery, *, is_last: bool) -> bool:
        """Returns whether the query is answered; False: a reply cannot be split, so the query is worth a repetition."""
        for reply in read_one_in(self._registry, self._task.forms, query.urn, self._into, query.as_of):
            if reply is None:
                self._add_result("gone", query.urn, query.position)
                return True
            if not query.lands:
                self._add_result("there" if isinstance(reply, Reply) else "inexpressible", query.urn, query.position)
                return True
            found = self._land_single(query, reply, is_last=is_last) if isinstance(reply, Reply) else "absent"
            if found != "absent":
                return found == "landed"
        self._add_result("inexpressible", query.urn, query.position)
        return True

    def _land_single(self, query: SingleQuery, reply: Reply, *, is_last: bool) -> Literal["landed", "absent", "broken"]:
        """Lands the structure of a reply; the last reply is landed as it is if it cannot be split."""
        if not self._task.splits:
            self._land_whole(query, reply)
            return "landed"
        try:
            found = self._find_artefact(query.urn, reply)
        except StructureMessageError as error:
            _log.warning("the reply about %s cannot be split: %s", query.urn, error)
            if not is_last:
                return "broken"
            self._land_whole(query, reply)
            return "landed"
        if found is None:
            return "absent"
        self._land(found, query.position, reply)
        return "landed"

    def _find_artefact(self, urn: str, reply: Reply) -> Artefact | None:
        name = same_artefact(urn)
        with reply.path.open("rb") as stream:
            artefacts = split(stream, reply.media_type)
            return next((each for each in artefacts if each.urn and same_artefact(each.urn) == name), None)

    def _land(self, artefact: Artefact, position: RowPosition, reply: Reply, row: int = 0) -> None:
        urn = self._task.named(artefact.urn) if artefact.urn else None
        self._file.add(
            {
                "ordinal": position.ordinal(row),
                "operation": "upsert",
                "scope": artefact.agency or "",
                "path": "",
                "id": urn,
                "type": artefact.kind,
                "version": artefact.version,
                "body": artefact.message(),
                "media_type": artefact.media_type,
                "modified_at": position.at,
                "source_transaction": position.transaction,
                "received_at": reply.received_at,
            }
        )
        if urn:
            self._add_result("landed", urn, position)

    def _land_whole(self, query: SingleQuery, reply: Reply) -> None:
        named = Urn.parse(query.urn)
        self._file.add(
            {
                "ordinal": query.position.ordinal(),
                "operation": "upsert",
                "scope": named.agency,
                "path": "",
                "id": query.urn,
                "type": named.class_name,
                "version": named.version,
                "body": reply.path.read_bytes(),
                "media_type": reply.media_type,
                "modified_at": query.position.at,
                "source_transaction": query.position.transaction,
                "received_at": reply.received_at,
            }
        )
        self._add_result("landed", query.urn, query.position)

    def _add_result(self, kind: ResultKind, urn: str, position: RowPosition) -> None:
        self.results.append(TaskResult(kind, urn, position.number))


@dataclass(slots=True)
class ReadTotals:
    """The results of all tasks; URNs are keyed by the name that a structure has in all formats.

    Attributes:
        landed: URNs, as the bodies have them.
        answered: numbers of the queries whose replies were landed.
        others: URNs of structures that replies contained, and that were not wanted.
        there: URNs that the registry has, of those that were only checked.
        gone: URNs that the registry reports as absent, by the number of the query.
        inexpressible: URNs that the registry has and cannot write in the format, by the number of the query.
        files: SHA-256 by name.
        rows: in all files.
    """

    landed: dict[str, str] = field(default_factory=dict)
    answered: set[int] = field(default_factory=set)
    others: dict[str, str] = field(default_factory=dict)
    there: dict[str, str] = field(default_factory=dict)
    gone: dict[int, str] = field(default_factory=dict)
    inexpressible: dict[int, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def add(self, results: Iterable[TaskResult]) -> None:
        """Adds the results of tasks."""
        for each in results:
            self._add(each)

    def _add(self, result: TaskResult) -> None:
        match result.kind:
            case "landed":
                self.landed[same_artefact(result.urn)] = result.urn
                self.answered.add(result.number)
            case "other":
                self.others[same_artefact(result.urn)] = result.urn
            case "there":
                self.there[same_artefact(result.urn)] = result.urn
            case "gone":
                self.gone[result.number] = result.urn
            case "inexpressible":
                self.inexpressible[result.number] = result.urn
            case "file":
                self.add_file(result.urn, result.detail or "", result.number)

    def add_file(self, name: str, sha256: str, rows: int) -> None:
        """Adds a complete file."""
        self.files[name] = sha256
        self.rows += rows


TASK_RESULT_SCHEMA = "kind string, urn string, number bigint, detail string"


def read_in_tasks(spark: SparkSession, task: ReadTask, shares: Sequence[TaskShare]) -> list[TaskResult]:
    """Runs one task for each share, all in parallel, and returns their results.

    Raises:
        ContextureError: a task failed; the error is that of the task.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _result_batch(task, shares[number])

    numbers = spark.range(0, len(shares), 1, len(shares))
    try:
        rows = numbers.mapInArrow(read, TASK_RESULT_SCHEMA).collect()
    except ContextureError:
        raise
    except Exception as error:
        # Spark wraps the error of a task into several layers of its own text; only our sentence is of use.
        raise to_contexture_error(error) from None
    return [TaskResult(row["kind"], row["urn"], row["number"], row["detail"]) for row in rows]


def _result_batch(task: ReadTask, share: TaskShare) -> pa.RecordBatch:
    try:
        results = read_share(task, share)
    except ContextureError as error:
        # The driver learns the intent from the name of the class, so it has to be one of `contexture.errors`.
        raise from_dict(error.as_dict()) from None
    return pa.RecordBatch.from_pydict(
        {
            "kind": pa.array([each.kind for each in results], pa.string()),
            "urn": pa.array([each.urn for each in results], pa.string()),
            "number": pa.array([each.number for each in results], pa.int64()),
            "detail": pa.array([each.detail for each in results], pa.string()),
        }
    )
