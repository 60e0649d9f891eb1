"""Reading for a backfill from a registry's log: what it did in an interval, as each structure was then.

The log tells it, and `asOf` gives the contents. What the log tells no longer, or can't give as it was, comes from the
archive where that has it. What neither has is listed, and nothing is made up.
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
from contexture.sources.sdmx.reading.scope import SelectedStructures
from contexture.sources.sdmx.reading.steps import (
    LogReplay,
    LogStep,
    Moved,
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
from spark_jobs.structures.landing import LandingFile, Row, landing_file
from spark_jobs.structures.read_context import ReadContext, ReadOutcome
from spark_jobs.structures.read_tasks import One

FILE = "part-archive.parquet"

Places = Mapping[int, int]
"""New ordinals of archived rows, by their old ones."""


def archived_rows(landing: StoredFolder, transaction: int, only: frozenset[str] | None) -> list[int]:
    """Ordinals of the rows that an archived landing has of a transaction, in order; `only` those of these."""
    with landing.home.translate_errors(landing.path):
        dataset: Any = landing.dataset(landing.files(".parquet"))
        wanted = ds.field("source_transaction") == transaction
        rows = dataset.to_table(columns=["ordinal", "id"], filter=wanted).to_pylist()
    return sorted(row["ordinal"] for row in rows if only is None or row["id"] in only)


def copy_rows(intake: ReadContext, store: PublicationStore, places: Mapping[str, Places]) -> None:
    """Copies archived rows into the landing.

    Args:
        intake: of the landing.
        store: of the publication.
        places: of the rows, by the run whose archived landing they are in.
    """
    if not places:
        return
    with landing_file(intake.reading.landing, FILE) as file:
        for run, ordinals in places.items():
            for batch in _batches(store.landing(run), ordinals):
                _add(file, batch, ordinals)
    intake.tally.note_file(FILE, file.sha256, file.rows)


def _batches(landing: StoredFolder, ordinals: Places) -> Iterator[Any]:
    wanted = pa.array(list(ordinals), pa.int64())
    for unit in units_of(landing):
        for batch in batches_of(landing, unit):
            kept = batch.filter(pc.is_in(batch.column("ordinal"), value_set=wanted))
            if kept.num_rows:
                yield kept


def _add(file: LandingFile, batch: Any, ordinals: Places) -> None:
    for number in range(batch.num_rows):
        row: Row = batch.slice(number, 1).to_pylist()[0]
        file.add({**_known(row), "ordinal": ordinals[row["ordinal"]]})


def _known(row: Row) -> Row:
    found: Row = {name: value for name, value in row.items() if name in LANDING.names}  # type: ignore[assignment]
    return found


UNTOLD = "which neither the registry's log nor an archive holds"
NO_CONTENT_THEN = "whose contents the registry doesn't show as they were then"


def land_past(
    intake: ReadContext, order: StageOrder, interval: tuple[datetime, datetime], moved: Moved = no_version_moves
) -> ReadOutcome:
    """Lands what a registry did in an interval, in its order.

    Args:
        intake: where it is landed.
        order: what the scheduler asked for.
        interval: its end excluded.
        moved: says what a transaction brings to further topics.

    Raises:
        NoLogError: the registry keeps none.
        PartlyArchivedError: something is missing, and the order refuses that.
        ContextureError: the registry failed.
    """
    registry = intake.registry
    if not registry.has_log:
        raise NoLogError(
            f"the registry at {registry.address} keeps no log that could be sent again",
            next_step="backfill an interval that is archived",
        )
    period = registry.period(*interval)
    # The list first: what happens after it is undone by the log, which is asked then.
    listed = intake.listed()
    log = registry.transactions(period.before)
    intake.queries.append(f"transactions from {interval[0].isoformat()} to {interval[1].isoformat()}")
    meaning = SelectedStructures(
        intake.selectors, (*listed.urns, *changed_urns(log.transactions).values(), *intake.sent.values())
    )
    found = plan_log_replay(log, period, meaning, held=listed.held, sent=intake.sent, moved=moved)
    archive = store_of(order).archive
    earlier = _earlier(archive, order, interval, period.before)
    landing = _Landing(intake, order, found, archive)
    missing = (*_before_the_log(period), *landing.land((*earlier, *period.ids)))
    registry.probe()
    check_missing(order, missing)
    _write_before(order, intake, found)
    return ReadOutcome(None, 0, complete=False, missing=missing, left_out=tuple(landing.left_out))


def _before_the_log(period: LogPeriod) -> Iterator[str]:
    if not period.is_whole:
        first = min(period.ids, default=period.before + 1)
        yield f"transactions before {first} of the registry, if there were any: its log isn't searched further back"


def _earlier(
    archive: PublicationArchive, order: StageOrder, interval: tuple[datetime, datetime], before: int
) -> tuple[int, ...]:
    """Transactions that the archive has in this interval, for they were read in it, though they were made before it.

    An interval before it that comes from the archive has them not.
    """
    if order.replay.replay_from != "auto":
        return ()
    return tuple(number for number in archive.received(*interval) if number <= before)


class _Landing:
    """Decides for each transaction where it comes from, and lands it there."""

    def __init__(self, intake: ReadContext, order: StageOrder, found: LogReplay, archive: PublicationArchive) -> None:
        self.left_out: list[int] = []
        self._intake = intake
        self._order = order
        self._past = found
        self._archive = archive
        self._questions: list[One] = []
        self._changed: set[int] = set()
        self._places: dict[str, dict[int, int]] = {}
        self._why: dict[int, str] = {}

    def land(self, transactions: Iterable[int]) -> tuple[str, ...]:
        """Lands these transactions, rising; gives a sentence for each stretch of them that is missing."""
        every = tuple(transactions)
        for number in every:
            self._place(number)
        copy_rows(self._intake, store_of(self._order), self._places)
        self._ask()
        return tuple(_stretches((number, self._why[number]) for number in every if number in self._why))

    def _place(self, number: int) -> None:
        step = self._past.steps.get(number)
        run = self._archive.run_of(number)
        if number in self._past.known and (step is None or self._can_be_read(step)):
            self._place_step(step)
        elif run is not None:
            self._place_archived(run, number)
        else:
            self._why[number] = NO_CONTENT_THEN if number in self._past.known else UNTOLD

    def _can_be_read(self, step: LogStep) -> bool:
        as_it_was = self._intake.registry.has_history and step.transaction.id not in self._past.unreadable
        return as_it_was or not step.read

    def _place_step(self, step: LogStep | None) -> None:
        if step is None:
            return
        number, at = step.transaction.id, step.transaction.at
        changed = {same_artefact(urn) for urn in step.transaction.changed}
        for wanted in step.read:
            self._questions.append(One(self._intake.place(number, at), wanted.urn, as_of=at))
            if same_artefact(wanted.urn) in changed:
                self._changed.add(self._questions[-1].place.number)
        for urn in step.delete:
            self._intake.delete(urn, self._intake.place(number, at))

    def _place_archived(self, run: ArchivedRun, number: int) -> None:
        landing = store_of(self._order).landing(run.run)
        places = self._places.setdefault(run.run, {})
        only = self._archive.sent_by(run, number)
        for ordinal in archived_rows(landing, number, only):
            places[ordinal] = self._intake.place(number).ordinal()

    def _ask(self) -> None:
        """Asks for all contents as they were; a transaction of which one is denied is left out as a whole."""
        for question in self._intake.ask(self._questions):
            number = question.place.transaction
            if question.place.number in self._changed and number is not None:
                self._why[number] = NO_CONTENT_THEN
                self.left_out.append(number)


def _stretches(lacking: Iterable[tuple[int, str]]) -> Iterator[str]:
    """A sentence for each stretch of ids with one reason."""
    for (reason, _), group in groupby(enumerate(lacking), key=lambda each: (each[1][1], each[1][0] - each[0])):
        numbers = [number for _, (number, _) in group]
        which = f"transaction {numbers[0]}" if len(numbers) == 1 else f"transactions {numbers[0]} to {numbers[-1]}"
        yield f"{which} of the registry, {reason}"


def _write_before(order: StageOrder, intake: ReadContext, found: LogReplay) -> None:
    """Says what was there before: by it, deletions know their topics, and routes which version was the latest."""
    urns = sorted(intake.tally.landed.get(name) or urn for name, urn in found.selected.items())
    store_of(order).landing(order.run).write_structures_before(urns)
