"""The task that sends: one mapped instance for each shard of the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from contexture_airflow.operators.common import TransactionsLink, defer_send_errors

if TYPE_CHECKING:
    from airflow.sdk import Context


class PublishOutboxOperator(BaseOperator):
    """Sends one shard of an approved outbox to Kafka, each record exactly once, from the ledger's position.

    The connection is the publication's, of the Kafka provider's type. Sends that fail are done again by the
    publication's `batch_ttl` and `batch_retry_intervals`, whatever Airflow's own retries do: failed sends and the time
    of the next are kept on storage, and a wait of more than a minute gives the worker slot back.

    **When red:** what is in Kafka stays there and is not sent again. Correct what the error names and clear this task,
    or start a new run: it finishes this outbox before it reads anything new.

    Args:
        staged: what stage returned.
        shard: which shard.
    """

    template_fields: Sequence[str] = ("staged", "shard")
    operator_extra_links = (TransactionsLink(),)

    def __init__(self, *, staged: Any, shard: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.staged = staged
        self.shard = shard

    def execute(self, context: Context) -> dict[str, Any]:
        """Returns counts of what was sent."""
        return defer_send_errors(self, self._send)

    def resume(self, context: Context, event: Any = None) -> dict[str, Any]:
        """The same, when the time of a late attempt has come."""
        return defer_send_errors(self, self._send)

    def _send(self) -> dict[str, Any]:
        from contexture_airflow.connections.settings import open_home, targets
        from contexture_airflow.run import StagedOutbox
        from contexture_airflow.run_events import open_run_events
        from contexture_airflow.steps.publish import build_shard_attempts, send_shard

        staged = StagedOutbox.from_xcom(self.staged)
        store = open_home().publication(staged.publication)
        manifest = store.outboxes.manifest(staged.outbox)
        publication = store.run(staged.run).order().publication
        target = targets(self.log.info)(publication, manifest.interval)
        with open_run_events(store.home, self.log.warning) as events:
            shard_events, report = events.shard(manifest, self.shard), self.log.info
            attempts = build_shard_attempts(
                store, staged.outbox, self.shard, publication, report=report, on_change=shard_events.attempts_changed
            )
            result = send_shard(store, manifest, self.shard, target, attempts, shard_events)
        return {
            "shard": result.shard,
            "sent": result.records_sent,
            "skipped": result.records_skipped,
            "transactions": result.transactions,
            "transactions_elsewhere": result.transactions_elsewhere,
            "bytes": result.bytes,
            "seconds": round(result.seconds, 3),
            "superseded": result.superseded,
        }
