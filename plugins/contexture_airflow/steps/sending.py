"""Sending the shards of an approved outbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow.parquet as pq

from contexture.batches import retry_delays
from contexture.errors import ConfigurationError
from contexture.kafka import ShardResult
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.manifest import Manifest
from contexture.outbox.orders import StageOrder
from contexture.outbox.reader import OutboxShardReader
from contexture.outbox.storage import Storage
from contexture.publications import Publication
from contexture_airflow.steps.target import Target


class Attempts(Protocol):
    """How many sends of one outbox shard have failed; kept wherever it outlives the task."""

    def used(self) -> int:
        """Attempts used up so far."""
        ...

    def count(self, attempts: int) -> None:
        """Keeps a new number."""
        ...


class OutboxAttempts:
    """Attempts kept in the outbox's own status, where settle and people find them."""

    def __init__(self, outboxes: Outboxes, outbox: str) -> None:
        self._outboxes = outboxes
        self._outbox = outbox

    def used(self) -> int:
        """Attempts used up so far."""
        return self._outboxes.status(self._outbox).attempts

    def count(self, attempts: int) -> None:
        """Keeps a new number, unless another shard has failed more often."""
        self._outboxes.count_attempt(self._outbox, max(attempts, self.used()))


class Delays:
    """The waits before further attempts, in milliseconds; each one taken is counted before it is waited.

    Attributes:
        used_up: `batch_ttl` allows no further attempt.
    """

    def __init__(self, publication: Publication, attempts: Attempts) -> None:
        self.used_up = False
        self._batches = publication.batches
        self._attempts = attempts

    def __iter__(self) -> Iterator[int]:
        used = self._attempts.used()
        delays = retry_delays(self._batches.batch_ttl, self._batches.batch_retry_intervals)
        for attempt, delay_ms in enumerate(delays, start=1):
            if attempt > used:
                self._attempts.count(attempt)
                yield delay_ms
        self.used_up = True


def send_shard(storage: Storage, manifest: Manifest, shard: int, target: Target, delays: Delays) -> ShardResult:
    """Sends what is not yet sent of one shard.

    Raises:
        ConfigurationError: the outbox is not approved.
        ContextureError: as `contexture.kafka.Publisher.publish`.
    """
    status = Outboxes(storage, manifest.publication).status(manifest.outbox).status
    if status not in {"approved", "concluded"}:
        raise ConfigurationError(
            f"outbox {manifest.outbox} is {status}, and only an approved one is sent",
            next_step="start a new run of the publication",
            outbox=manifest.outbox,
        )
    reader = OutboxShardReader(storage, manifest, shard)
    return target.send(reader, len(manifest.shards), delays)


def topic_counts(storage: Storage, manifest: Manifest) -> dict[str, int]:
    """The topics of an outbox with their numbers of records, ordered by name."""
    path = storage.path(PublicationFolder(manifest.publication).topics(manifest.outbox))
    table = pq.read_table(path, columns=["topic", "records"], filesystem=storage.filesystem, partitioning=None)
    return dict(sorted(zip(table.column("topic").to_pylist(), table.column("records").to_pylist(), strict=True)))


def staged_publication(storage: Storage, publication: str, run: str) -> Publication:
    """The publication as it was when the run was staged: what is sent belongs to that one."""
    order = storage.read(PublicationFolder(publication).order(run))
    return StageOrder.model_validate_json(order).publication
