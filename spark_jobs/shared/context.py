"""The context of a stage: order, settings, folders of the run, and the check that every task's result is visible.

The driver finds the files of tasks by listing a folder. A network share may show a machine the folder as it was half a
minute ago, and some object stores list late. A file that is not seen would count as gone from the source, or its events
would not be sent.

Bodies and hashes never return through the JVM. Each task writes them to one Parquet file for each folder and run of
consecutive ordinals. A file is named by its first event, so that the files of a folder are in order when sorted by
name. A repeated task writes the same files again.
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
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from contexture.storage.publication_store import LandingStore, OutboxStore, PublicationStore
from contexture.storage.quarantine import Quarantine

_LEAST = 1 << 63


def store_of(order: StageOrder) -> PublicationStore:
    """Returns the store of the publication of an order."""
    return _open_home(order.home).publication(order.publication.name)


def has_never_read(order: StageOrder, landing: LandingManifest) -> bool:
    """Returns whether the run read everything, and nothing that was read before contradicts an empty source.

    State has nothing. The ledger has nothing that state does not know of, because the run would have a higher number.
    """
    pointer = store_of(order).state.pointer()
    return landing.complete and landing.knows_source and pointer.is_blank and order.sequence == pointer.sequence + 1


@lru_cache(maxsize=4)
def _open_home(address: str) -> Home:
    # Opening an address of Amazon S3 requests the region of its bucket.
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
        """Closes the files, because the next events are not the successors of those before."""
        self._stack.close()
        self._open.clear()

    def write(self, folder: StoredFolder, events: Any) -> None:
        """Appends a table, in order; a table without rows leaves no file."""
        if events.num_rows:
            self._writer(folder, events).write_table(events)

    def _writer(self, folder: StoredFolder, first: Any) -> pq.ParquetWriter:
        if folder.path not in self._open:
            # Notified events have numbers below zero, which do not sort as text.
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
    """The order, outbox, state and folders of one stage, and the settings that follow from its publication.

    Attributes:
        order: the order of the run.
        outbox: id of the outbox that is being made.
        pointer_json: the pointer of the state to compare with, as JSON.
        reference_time: the time that rules about age refer to: the end of the read, never the clock.
        in_turn: some of the events were notified, so that each is compared with the one before it, and not with what
            the target has before all of them.
    """

    order: StageOrder
    outbox: str
    pointer_json: bytes
    reference_time: datetime
    in_turn: bool = False

    @property
    def publication(self) -> Publication:
        """The publication of the run."""
        return self.order.publication

    @property
    def everything(self) -> bool:
        """Whether unchanged events are also sent."""
        return self.order.mode in {"full", "backfill"} or self.order.republish

    @property
    def is_backfill(self) -> bool:
        """Whether a history is sent again, which neither continues state nor shows what is gone."""
        return self.order.mode == "backfill"

    @property
    def skips_outdated(self) -> bool:
        """Whether a backfill skips events of which the target has a newer version."""
        return self.is_backfill and self.publication.topics.keep == "latest" and not self.order.replay.sends_outdated

    @property
    def judged_rules(self) -> frozenset[str]:
        """The row rules that are not off."""
        return frozenset(severities(self.publication.quality.rules))

    @property
    def judges_targets(self) -> bool:
        """Whether references of entities are judged; only a full run can know that an entity does not exist."""
        return self.order.mode == "full" and "relationship-target" in self.judged_rules

    @property
    def store(self) -> PublicationStore:
        """The store of the publication."""
        return store_of(self.order)

    @property
    def landing(self) -> LandingStore:
        """The folder of what the run read."""
        return self.store.landing(self.order.run)

    @property
    def work(self) -> StoredFolder:
        """The folder of intermediate files, until the outbox is complete."""
        return self.store.run(self.order.run).work

    @property
    def records(self) -> OutboxStore:
        """The outbox that is being made."""
        return self.store.outbox(self.outbox)

    @property
    def quarantine(self) -> Quarantine:
        """The quarantine of what the run refuses."""
        return self.store.quarantine(self.outbox)

    @property
    def by_attribute(self) -> bool:
        """Whether an event is one attribute rather than one entity."""
        return self.publication.splits_by_attribute

    @property
    def maximum_record_bytes(self) -> int:
        """The maximum size of key and value of one record together."""
        return int(self.publication.topics.config.get("max.message.bytes", MAXIMUM_RECORD_BYTES))

    @property
    def headers(self) -> tuple[str, ...]:
        """The names of the record headers that vary; each is a column of the shards."""
        message_envelope = envelope(self.publication)
        return () if message_envelope is None else message_envelope.columns

    @property
    def joins_lines(self) -> bool:
        """Whether the events of a sub-batch are lines of one record."""
        return self.publication.joins_lines


def event_number(ordinal: int, part: int) -> int:
    """Returns the number that orders events: by the place of their object, then by their place in the object."""
    return ordinal << PART_BITS | part


def check_task_results(found: int, expected: int, what: str) -> None:
    """Checks that the storage lists everything that tasks wrote.

    Args:
        found: the number that is visible.
        expected: the number that the tasks wrote.
        what: their name, for people.

    Raises:
        RetriableError: the storage lists fewer; a new preparation starts from nothing.
    """
    if found != expected:
        raise RetriableError(
            f"{found} of {expected} {what} are visible: the storage does not immediately list what other processes "
            "wrote",
            next_step="retry the task; if it fails again, move CONTEXTURE_HOME to a storage that lists files as soon "
            "as they are written (a network share: mount it so that folders are not cached)",
        )
