"""The context of a stage: order, settings, folders of the run, and whether every task's result is there.

They find each other's files by listing a folder. A network share may show a machine the folder as it was half a minute
ago, and some object stores list late: what is not seen would be taken for gone from the source, or not be sent.

Bodies and hashes never travel back through the JVM: each task writes them to one Parquet file for each folder and run
of consecutive ordinals, named by its first event, so that the files of a folder, sorted by name, are in order. A
repeated task writes the same files again.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq

from contexture.errors import RetriableError
from contexture.publications import Publication
from contexture.records.messages.envelopes import envelope
from contexture.sources.ngsi.rules.catalogue import severities
from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import LandingStore, OutboxStore, PublicationStore
from contexture.storage.quarantine import Quarantine

_LEAST = 1 << 63


def store_of(order: StageOrder) -> PublicationStore:
    """Returns the store that an order is about."""
    return _open_home(order.home).publication(order.publication.name)


@lru_cache(maxsize=4)
def _open_home(address: str) -> Home:
    # Opening an address of Amazon's asks where its bucket is.
    return Home(address)


class RunFiles:
    """Writes tables that begin with a column `event`, a file per folder for each run of consecutive ordinals."""

    def __init__(self) -> None:
        self._open: dict[str, pq.ParquetWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> RunFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def begin_run(self) -> None:
        """The next events do not follow on those before: the files are closed."""
        self._stack.close()
        self._open.clear()

    def write(self, folder: StoredFolder, events: Any) -> None:
        """Appends a table, in order; a table without rows leaves no file."""
        if events.num_rows:
            self._writer(folder, events).write_table(events)

    def _writer(self, folder: StoredFolder, first: Any) -> pq.ParquetWriter:
        if folder.path not in self._open:
            # Events of what was notified have numbers below zero, which do not sort as text.
            name = f"{first.column('event')[0].as_py() + _LEAST:020d}.parquet"
            writer = folder.table_writer(name, first.schema, compression="lz4")
            self._open[folder.path] = self._stack.enter_context(writer)
        return self._open[folder.path]


PART_BITS = 12
MAXIMUM_PARTS = 1 << PART_BITS

MAXIMUM_RECORD_BYTES = 1_000_000
"""The client's and the broker's default limit of one record; `topics.config` may raise it."""


@dataclass(frozen=True, slots=True)
class StageContext:
    """One preparation.

    Attributes:
        order: what the scheduler asked for.
        outbox: id of the outbox that is being made.
        pointer_json: the state to compare with, as its pointer's JSON.
        reference_time: the time that rules about age refer to: the end of the pull, never the clock.
        in_turn: some of the events were notified, so that each is compared with the one before it, and not with what
            the target holds before all of them.
    """

    order: StageOrder
    outbox: str
    pointer_json: bytes
    reference_time: datetime
    in_turn: bool = False

    @property
    def publication(self) -> Publication:
        """Whose outbox it is."""
        return self.order.publication

    @property
    def everything(self) -> bool:
        """Whether unchanged events are sent too."""
        return self.order.mode in {"full", "backfill"} or self.order.republish

    @property
    def is_backfill(self) -> bool:
        """Whether a history is sent again, which neither follows on state nor shows what is gone."""
        return self.order.mode == "backfill"

    @property
    def skips_outdated(self) -> bool:
        """Whether what is sent again is left out where the target holds something newer."""
        return self.is_backfill and self.publication.topics.keep == "latest" and not self.order.replay.sends_outdated

    @property
    def judged_rules(self) -> frozenset[str]:
        """The rules that are not off."""
        return frozenset(severities(self.publication.quality.rules))

    @property
    def judges_targets(self) -> bool:
        """Whether it matters what entities refer to; only who reads everything can say that something is not there."""
        return self.order.mode == "full" and "relationship-target" in self.judged_rules

    @property
    def store(self) -> PublicationStore:
        """The store of the publication."""
        return store_of(self.order)

    @property
    def landing(self) -> LandingStore:
        """What the run read."""
        return self.store.landing(self.order.run)

    @property
    def work(self) -> StoredFolder:
        """Where intermediate files are until the outbox is complete."""
        return self.store.run(self.order.run).work

    @property
    def records(self) -> OutboxStore:
        """The outbox that is being made."""
        return self.store.outbox(self.outbox)

    @property
    def quarantine(self) -> Quarantine:
        """What the run refuses."""
        return self.store.quarantine(self.outbox)

    @property
    def by_attribute(self) -> bool:
        """Whether an event is one attribute rather than one entity."""
        return self.publication.splits_by_attribute

    @property
    def maximum_record_bytes(self) -> int:
        """What the key and value of one record may have together."""
        return int(self.publication.topics.config.get("max.message.bytes", MAXIMUM_RECORD_BYTES))

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of records that vary, each a column of what is written."""
        made = envelope(self.publication)
        return () if made is None else made.columns

    @property
    def joins_lines(self) -> bool:
        """Whether the events of a sub-batch travel as lines of one record."""
        return self.publication.joins_lines


def event_number(ordinal: int, part: int) -> int:
    """One number that orders events: by their object's place in the snapshot, then by their place in the object."""
    return ordinal << PART_BITS | part


def check_task_results(found: int, expected: int, what: str) -> None:
    """Sees that as much is found as there is.

    Args:
        found: how many are seen.
        expected: how many there are, as those tell who wrote them.
        what: their name, for people.

    Raises:
        RetriableError: it is not; preparing again begins with nothing.
    """
    if found != expected:
        raise RetriableError(
            f"{found} of {expected} {what} are seen: the storage does not list at once what other processes wrote",
            next_step="retry the task; if it comes back, let CONTEXTURE_HOME be on a storage that lists what was "
            "written (a network share: mounted so that folders are not cached)",
        )
