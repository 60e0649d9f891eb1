"""The context of a read, and its outcome beside the rows."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Literal

from contexture.sources.sdmx import Selector, Urn
from contexture.sources.sdmx.formats import same_artefact
from contexture.sources.sdmx.reading.scope import Names, SelectedStructures, by_name
from contexture.sources.sdmx.registry import Registry, Reply, read_one_in
from spark_jobs.structures.landing import Row, landing_file
from spark_jobs.structures.read_tasks import (
    Many,
    One,
    Question,
    ReadTask,
    ReadTotals,
    RowPosition,
    TaskResult,
    TaskShare,
    shared_out,
)

MARKS_FILE = "part-marks.parquet"
_QUERIES_SHOWN = 100
ReadShares = Callable[[ReadTask, Sequence[TaskShare]], Sequence[TaskResult]]


@dataclass(frozen=True, slots=True)
class Listed:
    """What the registry lists.

    Attributes:
        held: URNs of everything, by name.
        selected: those that the publication means.
        meaning: of the publication among them.
        urns: all URNs that are known of what is held.
        last_modified: when the list last changed, as the registry says it; None where it doesn't.
    """

    held: Names
    selected: Names
    meaning: SelectedStructures
    urns: tuple[str, ...]
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    """A row without a body."""

    operation: Literal["delete", "inexpressible"]
    urn: str
    place: RowPosition


class ReadContext:
    """Reads structures into the landing folder of a run.

    Args:
        registry: that is asked by the driver; tasks open it themselves.
        reading: what tasks know.
        selectors: of the publication.
        sent: URNs that the target holds.
        readers: how many tasks may read at once.
        read_shares: lets tasks read.

    Attributes:
        tally: what was told so far.
        queries: what was asked for, for people.
    """

    def __init__(
        self,
        registry: Registry,
        reading: ReadTask,
        selectors: Sequence[Selector],
        sent: Iterable[str],
        *,
        readers: int,
        read_shares: ReadShares,
    ) -> None:
        self.registry = registry
        self.reading = reading
        self.selectors = tuple(selectors)
        self.sent: Mapping[str, str] = by_name(sent)
        self.tally = ReadTotals()
        self.queries: list[str] = []
        self._readers = readers
        self._read_shares = read_shares
        self._numbers = count()
        self._files = count()
        self._alone: set[int] = set()
        self._marks: list[_Mark] = []

    def listed(self) -> Listed:
        """What the registry lists now, and what of it is meant.

        Raises:
            ContextureError: as `Registry.held`.
        """
        held = self.registry.list_structures(self.reading.media_type)
        urns = (*held.urns, *held.other_names)
        meaning, names = SelectedStructures(self.selectors, urns), by_name(held.urns)
        selected = {name: names[name] for name in meaning.among(names)}
        return Listed(names, selected, meaning, urns, held.last_modified)

    def place(self, transaction: int | None = None, at: datetime | None = None) -> RowPosition:
        """The place behind all that were given before."""
        return RowPosition(next(self._numbers), transaction, at)

    def read_selected(self, selected: Names, transaction: int | None = None) -> None:
        """Lands these structures by bounded questions; what their answers lack is left for `read_one_by_one`."""
        if not self.reading.splits:
            return
        queries = self.registry.queries(tuple(selected.values()))
        self.queries += map(str, queries[:_QUERIES_SHOWN])
        if len(queries) > _QUERIES_SHOWN:
            self.queries.append(f"and {len(queries) - _QUERIES_SHOWN:,} more")
        self._ask([Many(self.place(transaction), query) for query in queries], frozenset(selected))

    def read_one_by_one(self, urns: Iterable[str], transaction: int | None = None) -> tuple[str, ...]:
        """Lands these structures, each by a question of its own; gives those that are gone."""
        gone = self.ask([One(self.place(transaction), urn) for urn in urns])
        return tuple(question.urn for question in gone)

    def ask(self, questions: Sequence[One]) -> tuple[One, ...]:
        """Asks these questions, and marks what the format can't express; gives those about what is gone."""
        self._ask(questions)
        self._alone.update(question.place.number for question in questions)
        for question in questions:
            if question.lands and question.place.number in self.tally.inexpressible:
                self._marks.append(_Mark("inexpressible", question.urn, question.place))
        return tuple(question for question in questions if question.place.number in self.tally.gone)

    def look_for(self, urns: Iterable[str]) -> tuple[str, ...]:
        """Those of the structures that the registry holds, asked for one by one."""
        questions = [One(self.place(), urn, lands=False) for urn in urns]
        gone = {question.place.number for question in self.ask(questions)}
        return tuple(question.urn for question in questions if question.place.number not in gone)

    @property
    def gives_single_structures(self) -> bool:
        """Whether the registry has given a structure that it was asked for alone."""
        return not self._alone.isdisjoint(self.tally.answered)

    @property
    def lacks_some(self) -> bool:
        """Whether it has said of a structure that there is none, or none in this format."""
        return bool(self.tally.gone or self.tally.inexpressible)

    def gives(self, urn: str) -> bool:
        """Whether it gives this structure when it is asked for it alone."""
        with tempfile.TemporaryDirectory(prefix="contexture-") as scratch:
            answers = read_one_in(self.registry, self.reading.forms, urn, Path(scratch) / "reply")
            return any(isinstance(found, Reply) for found in answers)

    def delete(self, urn: str, place: RowPosition) -> None:
        """Lands that a structure is gone, or no longer meant."""
        self._marks.append(_Mark("delete", urn, place))

    def close(self) -> None:
        """Writes what has no body; afterwards the landing folder is complete."""
        received_at = datetime.now(UTC)
        with landing_file(self.reading.landing, MARKS_FILE) as file:
            for mark in sorted(self._marks, key=lambda mark: mark.place.number):
                file.add(self._row(mark, received_at))
        self.tally.note_file(MARKS_FILE, file.sha256, file.rows)

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of all files."""
        lines = "".join(f"{digest} {name}\n" for name, digest in sorted(self.tally.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def _ask(self, questions: Sequence[Question], wanted: frozenset[str] = frozenset()) -> None:
        if questions:
            files = [f"part-{next(self._files):05}.parquet" for _ in range(min(self._readers, len(questions)))]
            shares = shared_out(questions, self._readers, files)
            self.tally.add(self._read_shares(replace(self.reading, wanted=wanted), shares))

    def _row(self, mark: _Mark, received_at: datetime) -> Row:
        # The key of what was sent is the URN that its body has, which may differ from the one in the log.
        name = same_artefact(mark.urn)
        urn = self.tally.landed.get(name) or self.sent.get(name) or mark.urn
        named = _parsed(urn)
        return {
            "ordinal": mark.place.ordinal(),
            "operation": mark.operation,
            "scope": named.agency if named else "",
            "path": "",
            "id": urn,
            "type": named.class_name if named else None,
            "version": named.version if named else None,
            "modified_at": mark.place.at,
            "source_transaction": mark.place.transaction,
            "received_at": received_at,
        }


def _parsed(urn: str) -> Urn | None:
    try:
        return Urn.parse(urn)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """What the manifest of a landing says of the registry.

    Attributes:
        watermark: where the next run begins; None: it reads everything.
        source_count: structures that the registry holds among those that are meant.
        complete: what was not landed is not there.
        transaction: the newest transaction of the registry's log that the landing includes.
        missing: what of a backfill's interval was not landed, a sentence each.
        left_out: transactions of which not all was landed, so that none of them is told.
    """

    watermark: str | None
    source_count: int
    complete: bool
    transaction: int | None = None
    missing: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
