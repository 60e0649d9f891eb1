"""The queries of a read distributed over Spark's tasks: small rows come back, bodies stay in files of the tasks."""

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
"""Rows of one question that an ordinal has room for: 2 to the power of this."""

What = Literal["landed", "other", "there", "gone", "inexpressible", "file"]
"""What a task shows.

- `landed`: this structure is in the task's file.
- `other`: a reply held this one too, which was not wanted.
- `there`, `gone`: the registry holds this one, or says that it doesn't.
- `inexpressible`: it holds this one, and the format can't express it.
- `file`: the name of a file, its rows (`number`) and its SHA-256 (`detail`).
"""


@dataclass(frozen=True, slots=True)
class RowPosition:
    """Where the rows of an answer stand in landing.

    Attributes:
        number: of the question; the upper part of its rows' ordinals.
        transaction, at: id and time of the registry's transaction that they are told by.
    """

    number: int
    transaction: int | None = None
    at: datetime | None = None

    def ordinal(self, row: int = 0) -> int:
        """Of a row within the answer."""
        return (self.number << ROW_BITS) + row


@dataclass(frozen=True, slots=True)
class Many:
    """A bounded question whose answer holds many structures; those that are wanted are landed."""

    place: RowPosition
    query: StructureQuery


@dataclass(frozen=True, slots=True)
class One:
    """A question about one structure.

    Attributes:
        as_of: the moment it is wanted of; None: as it is now.
        lands: False asks only whether it is there.
    """

    place: RowPosition
    urn: str
    as_of: datetime | None = None
    lands: bool = True


Question = Many | One


@dataclass(frozen=True, slots=True)
class TaskShare:
    """What one task asks, one question after the other, and the name of the file that it writes."""

    file: str
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One thing that a task shows; `number` is that of the question, except for files."""

    what: What
    urn: str = ""
    number: int = 0
    detail: str | None = None


def shared_out(questions: Sequence[Question], readers: int, names: Sequence[str]) -> tuple[TaskShare, ...]:
    """The questions dealt out to as many tasks as may read at once, in turn, so that long answers meet short ones."""
    tasks = min(readers, len(questions))
    return tuple(TaskShare(names[task], tuple(questions[task::tasks])) for task in range(tasks))


_TRIES = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """What all tasks of a pull know.

    Attributes:
        connection, flavour: of the registry; a flavour that is known is not asked for again.
        media_type: the format that structures are read in.
        splits: replies are split; else each holds one structure and is taken as it is.
        others: media types in which structures are read that the registry doesn't write in the first one; they are
            converted later.
        target: the format that they are converted into, whose names they go by.
        landing: where the files go.
        wanted: names of the structures that are landed from replies that hold many.
        pause_seconds: between two questions of a task.
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
        """All media types in which structures are read, the one that is wanted first."""
        return (self.media_type, *self.others)

    def named(self, urn: str) -> str:
        """The URN that a structure is published by."""
        return named_in(urn, self.target) if self.target else urn


def read_share(reading: ReadTask, share: TaskShare) -> list[TaskResult]:
    """Asks what a task is to ask, and writes its file.

    Raises:
        ContextureError: of the registry, the storage or the deadline. Nothing is left then.
    """
    with (
        tempfile.TemporaryDirectory(prefix="contexture-") as scratch,
        reading.opening(reading.connection, flavour=reading.flavour) as registry,
        landing_file(reading.landing, share.file) as file,
    ):
        reader = _Reader(reading, registry, Path(scratch) / "reply", file)
        for place, question in enumerate(share.questions):
            reader.wait(first=place == 0)
            reader.ask(question)
    return [*reader.told, TaskResult("file", share.file, file.rows, file.sha256)]


class _Reader:
    """Asks one question at a time; the reply lies in a file, and one structure at a time in memory."""

    def __init__(self, reading: ReadTask, registry: Registry, into: Path, file: LandingFile) -> None:
        self._reading = reading
        self._registry = registry
        self._into = into
        self._file = file
        self._ends = time.monotonic() + reading.deadline_seconds
        self.told: list[TaskResult] = []

    def wait(self, *, first: bool) -> None:
        """Leaves the registry alone for a while, unless it has taken too long already."""
        if not first and self._reading.pause_seconds:
            time.sleep(self._reading.pause_seconds)
        if time.monotonic() > self._ends:
            raise RetriableError(
                f"reading {self._registry.address} takes longer than {self._reading.deadline_seconds:g} s",
                next_step="give it longer by source.walk_deadline_seconds, or read with more source.parallel_readers",
            )

    def ask(self, question: Many | One) -> None:
        """Asks one question, and keeps what the answer is."""
        if isinstance(question, Many):
            self._many(question)
        else:
            self._one(question)

    def _many(self, question: Many) -> None:
        try:
            reply = read_first_supported(self._registry, self._reading.forms, question.query, self._into)
        except ReplyTooLargeError:
            _log.warning("the reply to %s is too large: its structures are asked for one by one", question.query)
            return
        # Whatever a reply lacks is asked for alone, and only what that says is believed.
        if reply is None:
            return
        try:
            self._land_all(question, reply)
        except StructureMessageError as error:
            _log.warning("the reply to %s breaks off: %s", question.query, error)

    def _land_all(self, question: Many, reply: Reply) -> None:
        with reply.path.open("rb") as stream:
            for row, artefact in enumerate(split(stream, reply.media_type)):
                if artefact.urn is None or same_artefact(artefact.urn) in self._reading.wanted:
                    self._land(artefact, question.place, reply, row)
                else:
                    self._tell("other", artefact.urn, question.place)

    def _one(self, question: One) -> None:
        for attempt in range(_TRIES):
            if self._tried(question, is_last=attempt == _TRIES - 1):
                return

    def _tried(self, question: One, *, is_last: bool) -> bool:
        """Whether the answers were such that they could be used; they are not when one can't be split."""
        for reply in read_one_in(self._registry, self._reading.forms, question.urn, self._into, question.as_of):
            if reply is None:
                self._tell("gone", question.urn, question.place)
                return True
            if not question.lands:
                self._tell("there" if isinstance(reply, Reply) else "inexpressible", question.urn, question.place)
                return True
            found = self._found(question, reply, is_last=is_last) if isinstance(reply, Reply) else "absent"
            if found != "absent":
                return found == "landed"
        self._tell("inexpressible", question.urn, question.place)
        return True

    def _found(self, question: One, reply: Reply, *, is_last: bool) -> Literal["landed", "absent", "broken"]:
        """What came of a reply; one that can't be split goes on as it is when it was asked for again."""
        if not self._reading.splits:
            self._land_whole(question, reply)
            return "landed"
        try:
            found = self._artefact(question.urn, reply)
        except StructureMessageError as error:
            _log.warning("the reply about %s can't be split: %s", question.urn, error)
            if not is_last:
                return "broken"
            self._land_whole(question, reply)
            return "landed"
        if found is None:
            return "absent"
        self._land(found, question.place, reply)
        return "landed"

    def _artefact(self, urn: str, reply: Reply) -> Artefact | None:
        name = same_artefact(urn)
        with reply.path.open("rb") as stream:
            artefacts = split(stream, reply.media_type)
            return next((each for each in artefacts if each.urn and same_artefact(each.urn) == name), None)

    def _land(self, artefact: Artefact, place: RowPosition, reply: Reply, row: int = 0) -> None:
        urn = self._reading.named(artefact.urn) if artefact.urn else None
        self._file.add(
            {
                "ordinal": place.ordinal(row),
                "operation": "upsert",
                "scope": artefact.agency or "",
                "path": "",
                "id": urn,
                "type": artefact.kind,
                "version": artefact.version,
                "body": artefact.message(),
                "media_type": artefact.media_type,
                "modified_at": place.at,
                "source_transaction": place.transaction,
                "received_at": reply.received_at,
            }
        )
        if urn:
            self._tell("landed", urn, place)

    def _land_whole(self, question: One, reply: Reply) -> None:
        named = Urn.parse(question.urn)
        self._file.add(
            {
                "ordinal": question.place.ordinal(),
                "operation": "upsert",
                "scope": named.agency,
                "path": "",
                "id": question.urn,
                "type": named.class_name,
                "version": named.version,
                "body": reply.path.read_bytes(),
                "media_type": reply.media_type,
                "modified_at": question.place.at,
                "source_transaction": question.place.transaction,
                "received_at": reply.received_at,
            }
        )
        self._tell("landed", question.urn, question.place)

    def _tell(self, what: What, urn: str, place: RowPosition) -> None:
        self.told.append(TaskResult(what, urn, place.number))


@dataclass(slots=True)
class ReadTotals:
    """What was told, by the names that structures go by in all formats.

    Attributes:
        landed: URNs, as the bodies have them.
        answered: numbers of the questions that something was landed from.
        others: URNs of structures that replies held beside what was wanted.
        there: URNs that the registry holds, of those that it was only asked about.
        gone: URNs that it says it doesn't hold, by the number of the question.
        inexpressible: URNs that it holds and can't express, by the number of the question.
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

    def add(self, told: Iterable[TaskResult]) -> None:
        """Takes note of what tasks show."""
        for each in told:
            self._add(each)

    def _add(self, told: TaskResult) -> None:
        match told.what:
            case "landed":
                self.landed[same_artefact(told.urn)] = told.urn
                self.answered.add(told.number)
            case "other":
                self.others[same_artefact(told.urn)] = told.urn
            case "there":
                self.there[same_artefact(told.urn)] = told.urn
            case "gone":
                self.gone[told.number] = told.urn
            case "inexpressible":
                self.inexpressible[told.number] = told.urn
            case "file":
                self.note_file(told.urn, told.detail or "", told.number)

    def note_file(self, name: str, sha256: str, rows: int) -> None:
        """A file is complete."""
        self.files[name] = sha256
        self.rows += rows


TOLD = "what string, urn string, number bigint, detail string"


def read_in_tasks(spark: SparkSession, reading: ReadTask, shares: Sequence[TaskShare]) -> list[TaskResult]:
    """What all tasks show, one task for each share; so there are as many requests at once as shares.

    Raises:
        ContextureError: what a task raised.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _told(reading, shares[number])

    numbers = spark.range(0, len(shares), 1, len(shares))
    try:
        rows = numbers.mapInArrow(read, TOLD).collect()
    except ContextureError:
        raise
    except Exception as error:
        # Spark wraps what a task raised into its own text, several layers deep; only our sentence is of use.
        raise to_contexture_error(error) from None
    return [TaskResult(row["what"], row["urn"], row["number"], row["detail"]) for row in rows]


def _told(reading: ReadTask, share: TaskShare) -> pa.RecordBatch:
    try:
        told = read_share(reading, share)
    except ContextureError as error:
        # The name of one of the classes in `contexture.errors` shows the driver the intent.
        raise from_dict(error.as_dict()) from None
    return pa.RecordBatch.from_pydict(
        {
            "what": pa.array([each.what for each in told], pa.string()),
            "urn": pa.array([each.urn for each in told], pa.string()),
            "number": pa.array([each.number for each in told], pa.int64()),
            "detail": pa.array([each.detail for each in told], pa.string()),
        }
    )
