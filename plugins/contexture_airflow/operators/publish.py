"""The task that sends: one mapped instance for each shard of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from contexture.errors import RetriableError

if TYPE_CHECKING:
    from airflow.sdk import Context
    from pydantic import JsonValue

    from contexture_airflow.steps.sending import Attempts

_COUNTER_RETENTION = timedelta(days=90)


class PublishOutboxOperator(BaseOperator):
    """Sends one shard of an approved outbox to Kafka, each record exactly once, from where the ledger stands.

    The connection is the publication's, of the Kafka provider's type. Sends that fail are done again by the
    publication's `batch_ttl` and `batch_retry_intervals`, counted across the task's own retries.

    **When red:** what is in Kafka stays there and is not sent again. Correct what the error names and clear this task,
    or start a new run: it finishes this outbox before it reads anything new.

    Args:
        staged: what stage returned.
        shard: which shard.
    """

    template_fields: Sequence[str] = ("staged", "shard")

    def __init__(self, *, staged: Any, shard: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.staged = staged
        self.shard = shard

    def execute(self, context: Context) -> dict[str, Any]:
        """Returns counts of what was sent."""
        from contexture.outbox.lifecycle import Outboxes
        from contexture_airflow.steps.open import open_storage, targets
        from contexture_airflow.steps.run import Staged
        from contexture_airflow.steps.sending import Delays, send_shard, staged_publication

        storage, staged = open_storage(), Staged.received(self.staged)
        outboxes = Outboxes(storage, staged.publication)
        manifest = outboxes.manifest(staged.outbox)
        publication = staged_publication(storage, staged.publication, staged.run)
        target = targets(self.log.info)(publication, manifest.interval)
        delays = Delays(publication, TaskAttempts(context["task_state_store"], staged.outbox, outboxes))
        try:
            result = send_shard(storage, manifest, self.shard, target, delays)
        except RetriableError as error:
            if delays.used_up:
                # batch_ttl counts sends: Airflow's own retries must not add to it.
                raise AirflowFailException(f"batch_ttl is used up. {error}") from error
            raise
        return {
            "shard": result.shard,
            "sent": result.records_sent,
            "skipped": result.records_skipped,
            "transactions": result.transactions,
            "bytes": result.bytes,
            "seconds": round(result.seconds, 3),
            "superseded": result.superseded,
        }


class StateStore(Protocol):
    """What is asked of Airflow's `task_state_store`."""

    def get(self, key: str, default: JsonValue = None) -> JsonValue: ...
    def set(self, key: str, value: JsonValue, *, retention: timedelta | None = None) -> None: ...


class TaskAttempts:
    """Failed sends in `task_state_store`, by outbox: they survive the task's retries.

    The outbox's status gets the number too, so that settle goes on counting in a later run.
    """

    def __init__(self, store: StateStore, outbox: str, outboxes: Any) -> None:
        from contexture_airflow.steps.sending import OutboxAttempts

        self._store = store
        self._key = f"attempts/{outbox}"
        self._shown: Attempts = OutboxAttempts(outboxes, outbox)

    def used(self) -> int:
        """Attempts used up so far."""
        return int(str(self._store.get(self._key, 0)))

    def count(self, attempts: int) -> None:
        """Keeps a new number."""
        self._store.set(self._key, attempts, retention=_COUNTER_RETENTION)
        self._shown.count(attempts)
