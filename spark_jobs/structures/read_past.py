"""Reading for a backfill from a registry's log: the changes of an interval, with the contents of that time.

The log lists the changes, and `asOf` returns the contents. The archive replaces transactions that the log no longer
contains, or whose contents cannot be read. What neither has is reported as missing, and nothing is made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.sources.sdmx.formats import same_artefact
from contexture.sources.sdmx.reading.steps import (
    LogReplay,
    LogStep,
    Moved,
    SelectedStructures,
    changed_urns,
    no_version_moves,
    plan_log_replay,
)
from contexture.sources.sdmx.registry import LogPeriod
from contexture.storage.archive import ArchivedRun, PublicationArchive
from contexture.storage.folder import StoredFolder
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import PublicationStore
from contexture.storage.replay import NoLogError, check_missing
from contexture.storage.schemas import LANDING
from spark_jobs.shared.context import store_of
from spark_jobs.shared.parquet_rows import batches_of, units_of
from spark_jobs.structures.landing import LandingFile, LandingRow, landing_file
from spark_jobs.structures.read_context import ReadContext, ReadOutcome
from spark_jobs.structures.read_tasks import SingleQuery

FILE = "part-archive.parquet"

Ordinals = Mapping[int, int]
"""New ordinals of archived rows, by their old ones."""


def archived_rows(landing: StoredFolder, transaction: int, only: frozenset[str] | None) -> list[int]:
    """Returns the ordinals of the rows of a transaction in an archived landing, in order; `only` for these URNs."""
    with landing.home.translate_errors(landing.path):
        dataset: Any = landing.dataset(landing.files(".parquet"))
        wanted = ds.field("source_transaction") == transaction
        rows = dataset.to_table(columns=["ordinal", "id"], filter=wanted).to_pylist()
    return sorted(row["ordinal"] for row in rows if only is None or row["id"] in only)


def copy_rows(context: ReadContext, store: PublicationStore, ordinals: Mapping[str, Ordinals]) -> None:
    """Copies archived rows into the landing.

    Args:
        context: of the landing.
        store: of the publication.
        ordinals: of the rows, by the run whose archived landing they are in.
    """
    if not ordinals:
        return
    with landing_file(context.task.landing, FILE) as file:
        for run, of_run in ordinals.items():
            for batch in _batches(store.landing(run), of_run):
                _add(file, batch, of_run)
    context.totals.add_file(FILE, file.sha256, file.rows)


def _batches(landing: StoredFolder, ordinals: Ordinals) -> Iterator[Any]:
    wanted = pa.array(list(ordinals), pa.int64())
    for unit in units_of(landing):
        for batch in batches_of(landing, unit):
            kept = batch.filter(pc.is_in(batch.column("ordinal"), value_set=wanted))
            if kept.num_rows:
                yield kept


def _add(file: LandingFile, batch: Any, ordinals: Ordinals) -> None:
    for number in range(batch.num_rows):
        row: LandingRow = batch.slice(number, 1).to_pylist()[0]
        file.add({**_landing_columns(row), "ordinal": ordinals[row["ordinal"]]})


def _landing_columns(row: LandingRow) -> LandingRow:
    found: LandingRow = {name: value for name, value in row.items() if name in LANDING.names}  # type: ignore[assignment]
    return found


NOT_STORED = "which neither the registry's log nor an archive holds"
NO_CONTENT_OF_TIME = "whose contents the registry cannot show as they were then"


def land_past(
    context: ReadContext, order: StageOrder, interval: tuple[datetime, datetime], moved: Moved = no_version_moves
) -> ReadOutcome:
    """Lands the transactions of an interval in their order.

    Args:
        context: of the read.
        order: of the backfill.
        interval: its end excluded.
        moved: returns what a transaction moves to further topics.

    Raises:
        NoLogError: the registry has no log.
        PartlyArchivedError: a transaction is missing, and the order refuses that.
        ContextureError: the registry failed.
    """
    registry = context.registry
    if not registry.has_log:
        raise NoLogError(
            f"the registry at {registry.address} has no log from which an interval could be sent again",
            next_step="backfill an interval that is archived",
        )
    period = registry.period(*interval)
    # The list is read first, because the log is read after it and undoes what happens in between.
    listed = context.list_structures()
    log = registry.transactions(period.before)
    context.queries.append(f"transactions from {interval[0].isoformat()} to {interval[1].isoformat()}")
    selection = SelectedStructures(
        context.selectors, (*listed.urns, *changed_urns(log.transactions).values(), *context.sent.values())
    )
    found = plan_log_replay(log, period, selection, held=listed.held, sent=context.sent, moved=moved)
    archive = store_of(order).archive
    earlier = _archived_earlier(archive, order, interval, period.before)
    landing = _PastLanding(context, order, found, archive)
    missing = (*_before_the_log(period), *landing.land((*earlier, *period.ids)))
    registry.probe()
    check_missing(order, missing)
    _write_before(order, context, found)
    return ReadOutcome(None, 0, complete=False, missing=missing, skipped_transactions=tuple(landing.skipped))


def _before_the_log(period: LogPeriod) -> Iterator[str]:
    if not period.is_whole:
        first = min(period.ids, default=period.before + 1)
        yield f"transactions before {first} of the registry, if there were any: its log is not searched further back"


def _archived_earlier(
    archive: PublicationArchive, order: StageOrder, interval: tuple[datetime, datetime], before: int
) -> tuple[int, ...]:
    """Returns transactions from before the interval that were read in it, as the archive has them.

    The backfill of an earlier interval from the archive does not contain them.
    """
    if order.replay.replay_from != "auto":
        return ()
    return tuple(number for number in archive.received(*interval) if number <= before)


class _PastLanding:
    """A landing that takes each transaction from the log or from the archive."""

    def __init__(self, context: ReadContext, order: StageOrder, found: LogReplay, archive: PublicationArchive) -> None:
        self.skipped: list[int] = []
        self._context = context
        self._order = order
        self._past = found
        self._archive = archive
        self._queries: list[SingleQuery] = []
        self._changed: set[int] = set()
        self._ordinals: dict[str, dict[int, int]] = {}
        self._reasons: dict[int, str] = {}

    def land(self, transactions: Iterable[int]) -> tuple[str, ...]:
        """Lands these transactions in rising order; returns a sentence for each range of missing ones."""
        every = tuple(transactions)
        for number in every:
            self._place(number)
        copy_rows(self._context, store_of(self._order), self._ordinals)
        self._read_contents()
        return tuple(_describe_ranges((number, self._reasons[number]) for number in every if number in self._reasons))

    def _place(self, number: int) -> None:
        step = self._past.steps.get(number)
        run = self._archive.run_of(number)
        if number in self._past.known and (step is None or self._can_be_read(step)):
            self._place_step(step)
        elif run is not None:
            self._place_archived(run, number)
        else:
            self._reasons[number] = NO_CONTENT_OF_TIME if number in self._past.known else NOT_STORED

    def _can_be_read(self, step: LogStep) -> bool:
        as_it_was = self._context.registry.has_history and step.transaction.id not in self._past.unreadable
        return as_it_was or not step.read

    def _place_step(self, step: LogStep | None) -> None:
        if step is None:
            return
        number, at = step.transaction.id, step.transaction.at
        changed = {same_artefact(urn) for urn in step.transaction.changed}
        for wanted in step.read:
            self._queries.append(SingleQuery(self._context.next_position(number, at), wanted.urn, as_of=at))
            if same_artefact(wanted.urn) in changed:
                self._changed.add(self._queries[-1].position.number)
        for urn in step.delete:
            self._context.delete(urn, self._context.next_position(number, at))

    def _place_archived(self, run: ArchivedRun, number: int) -> None:
        landing = store_of(self._order).landing(run.run)
        ordinals = self._ordinals.setdefault(run.run, {})
        only = self._archive.sent_by(run, number)
        for ordinal in archived_rows(landing, number, only):
            ordinals[ordinal] = self._context.next_position(number).ordinal()

    def _read_contents(self) -> None:
        """Reads all contents of the log; skips a transaction as a whole if the registry lacks one of its contents."""
        for query in self._context.run_queries(self._queries):
            number = query.position.transaction
            if query.position.number in self._changed and number is not None:
                self._reasons[number] = NO_CONTENT_OF_TIME
                self.skipped.append(number)


def _describe_ranges(lacking: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Returns a sentence for each range of ids with one reason."""
    for (reason, _), group in groupby(enumerate(lacking), key=lambda each: (each[1][1], each[1][0] - each[0])):
        numbers = [number for _, (number, _) in group]
        which = f"transaction {numbers[0]}" if len(numbers) == 1 else f"transactions {numbers[0]} to {numbers[-1]}"
        yield f"{which} of the registry, {reason}"


def _write_before(order: StageOrder, context: ReadContext, found: LogReplay) -> None:
    """Writes which structures existed before, which decides the topics of deletions and the latest versions."""
    urns = sorted(context.totals.landed.get(name) or urn for name, urn in found.selected.items())
    store_of(order).landing(order.run).write_structures_before(urns)
