"""The context of a read, and its outcome besides the rows."""

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
from contexture.sources.sdmx.reading.steps import Names, SelectedStructures, by_name
from contexture.sources.sdmx.registry import Registry, Reply, read_one_in
from spark_jobs.structures.landing import LandingRow, landing_file
from spark_jobs.structures.read_tasks import (
    BulkQuery,
    ReadTask,
    ReadTotals,
    RowPosition,
    SingleQuery,
    TaskQuery,
    TaskResult,
    TaskShare,
    share_queries,
)

MARKS_FILE = "part-marks.parquet"
_QUERIES_SHOWN = 100
ReadShares = Callable[[ReadTask, Sequence[TaskShare]], Sequence[TaskResult]]


@dataclass(frozen=True, slots=True)
class RegistryListing:
    """The list of the registry's structures.

    Attributes:
        held: URNs of all structures, by name.
        selected: URNs of those that the publication selects, by name.
        selection: of the publication among all structures.
        urns: all known URNs of the structures, which may have several.
        last_modified: when the list last changed, as the registry writes it; None if it does not.
    """

    held: Names
    selected: Names
    selection: SelectedStructures
    urns: tuple[str, ...]
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    """A landing row without a body."""

    operation: Literal["delete", "inexpressible"]
    urn: str
    position: RowPosition


class ReadContext:
    """The context of one read, which lands structures in the folder of a run.

    Args:
        registry: for the queries of the driver; tasks open a connection of their own.
        task: the settings of tasks.
        selectors: of the publication.
        sent: URNs that the target has.
        readers: how many tasks may read in parallel.
        read_shares: runs the tasks.

    Attributes:
        totals: the results of all tasks so far.
        queries: the queries so far, as text for people.
    """

    def __init__(
        self,
        registry: Registry,
        task: ReadTask,
        selectors: Sequence[Selector],
        sent: Iterable[str],
        *,
        readers: int,
        read_shares: ReadShares,
    ) -> None:
        self.registry = registry
        self.task = task
        self.selectors = tuple(selectors)
        self.sent: Mapping[str, str] = by_name(sent)
        self.totals = ReadTotals()
        self.queries: list[str] = []
        self._readers = readers
        self._read_shares = read_shares
        self._numbers = count()
        self._files = count()
        self._single_numbers: set[int] = set()
        self._marks: list[_Mark] = []

    def list_structures(self) -> RegistryListing:
        """Reads the registry's present list, and selects from it.

        Raises:
            ContextureError: as `Registry.list_structures`.
        """
        held = self.registry.list_structures(self.task.media_type)
        urns = (*held.urns, *held.other_names)
        selection, names = SelectedStructures(self.selectors, urns), by_name(held.urns)
        selected = {name: names[name] for name in selection.among(names)}
        return RegistryListing(names, selected, selection, urns, held.last_modified)

    def next_position(self, transaction: int | None = None, at: datetime | None = None) -> RowPosition:
        """Returns the position after all that were returned before."""
        return RowPosition(next(self._numbers), transaction, at)

    def read_selected(
        self, selected: Names, transaction: int | None = None, at: datetime | None = None
    ) -> frozenset[str]:
        """Lands these structures by bulk queries, and returns the names of those that were landed.

        `read_singly` reads what the replies lack.
        """
        if not self.task.splits:
            return frozenset()
        queries = self.registry.queries(tuple(selected.values()))
        self.queries += map(str, queries[:_QUERIES_SHOWN])
        if len(queries) > _QUERIES_SHOWN:
            self.queries.append(f"and {len(queries) - _QUERIES_SHOWN:,} more")
        bulk = [BulkQuery(self.next_position(transaction, at), query) for query in queries]
        results = self._run(bulk, frozenset(selected))
        return frozenset(same_artefact(each.urn) for each in results if each.kind == "landed")

    def read_singly(self, urns: Iterable[str], transaction: int | None = None) -> tuple[str, ...]:
        """Lands these structures by single queries; returns those that are gone."""
        gone = self.run_queries([SingleQuery(self.next_position(transaction), urn) for urn in urns])
        return tuple(query.urn for query in gone)

    def run_queries(self, queries: Sequence[SingleQuery]) -> tuple[SingleQuery, ...]:
        """Runs these queries, and marks what the format cannot express; returns those whose structure is gone."""
        self._run(queries)
        self._single_numbers.update(query.position.number for query in queries)
        for query in queries:
            if query.lands and query.position.number in self.totals.inexpressible:
                self._marks.append(_Mark("inexpressible", query.urn, query.position))
        return tuple(query for query in queries if query.position.number in self.totals.gone)

    def search(self, urns: Iterable[str]) -> tuple[str, ...]:
        """Returns those of the structures that the registry has, found by single queries."""
        queries = [SingleQuery(self.next_position(), urn, lands=False) for urn in urns]
        gone = {query.position.number for query in self.run_queries(queries)}
        return tuple(query.urn for query in queries if query.position.number not in gone)

    @property
    def has_single_reply(self) -> bool:
        """Whether a single query has returned a structure."""
        return not self._single_numbers.isdisjoint(self.totals.answered)

    @property
    def has_negative_reply(self) -> bool:
        """Whether the registry has reported a structure as absent, or as inexpressible in the format."""
        return bool(self.totals.gone or self.totals.inexpressible)

    def can_read_singly(self, urn: str) -> bool:
        """Returns whether a single query for this structure returns it."""
        with tempfile.TemporaryDirectory(prefix="contexture-") as scratch:
            replies = read_one_in(self.registry, self.task.forms, urn, Path(scratch) / "reply")
            return any(isinstance(found, Reply) for found in replies)

    def delete(self, urn: str, position: RowPosition) -> None:
        """Lands the deletion of a structure, which is gone or no longer selected."""
        self._marks.append(_Mark("delete", urn, position))

    def close(self) -> None:
        """Writes the rows without bodies, which completes the landing folder."""
        received_at = datetime.now(UTC)
        with landing_file(self.task.landing, MARKS_FILE) as file:
            for mark in sorted(self._marks, key=lambda mark: mark.position.number):
                file.add(self._row(mark, received_at))
        self.totals.add_file(MARKS_FILE, file.sha256, file.rows)

    @property
    def digest(self) -> str:
        """The SHA-256 over the digests of all files."""
        lines = "".join(f"{digest} {name}\n" for name, digest in sorted(self.totals.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def _run(self, queries: Sequence[TaskQuery], wanted: frozenset[str] = frozenset()) -> Sequence[TaskResult]:
        if not queries:
            return ()
        files = [f"part-{next(self._files):05}.parquet" for _ in range(min(self._readers, len(queries)))]
        shares = share_queries(queries, self._readers, files)
        results = self._read_shares(replace(self.task, wanted=wanted), shares)
        self.totals.add(results)
        return results

    def _row(self, mark: _Mark, received_at: datetime) -> LandingRow:
        # The key of a sent structure is the URN of its body, which may differ from the one in the log.
        name = same_artefact(mark.urn)
        urn = self.totals.landed.get(name) or self.sent.get(name) or mark.urn
        named = _parse_urn(urn)
        return {
            "ordinal": mark.position.ordinal(),
            "operation": mark.operation,
            "scope": named.agency if named else "",
            "path": "",
            "id": urn,
            "type": named.class_name if named else None,
            "version": named.version if named else None,
            "modified_at": mark.position.at,
            "source_transaction": mark.position.transaction,
            "received_at": received_at,
        }


def _parse_urn(urn: str) -> Urn | None:
    try:
        return Urn.parse(urn)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """The facts about the registry for the manifest of a landing.

    Attributes:
        watermark: where the next run begins; None: it reads everything.
        source_count: how many selected structures the registry has.
        complete: whether a structure that was not landed is absent from the registry.
        transaction: the newest transaction of the registry's log that the landing includes.
        missing: what of a backfill's interval was not landed, one sentence for each gap.
        skipped_transactions: transactions that were not landed completely, and so are not published.
    """

    watermark: str | None
    source_count: int
    complete: bool
    transaction: int | None = None
    missing: tuple[str, ...] = ()
    skipped_transactions: tuple[int, ...] = ()
