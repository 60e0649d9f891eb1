"""Finishing what earlier runs left, before anything new is read."""

from __future__ import annotations

from datetime import UTC, datetime

from contexture.publications import Publication
from contexture.sending.target import TargetFor
from contexture.storage.conclusion import require_full_run
from contexture.storage.home import ProgressCallback
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.metrics import count_pending
from contexture_airflow.run import RunPlan, RunRequest
from contexture_airflow.run_events import UNRECORDED, RunEvents
from contexture_airflow.steps.conclude import conclude_outbox
from contexture_airflow.steps.plan_run import plan_run
from contexture_airflow.steps.publish import build_shard_attempts, check_ledger, send_shard, was_made_for_other_cluster
from contexture_airflow.steps.topic_watch import check_topics


def finish_open_transaction(
    store: PublicationStore,
    publication: Publication,
    request: RunRequest,
    target_for: TargetFor,
    report: ProgressCallback,
    events: RunEvents = UNRECORDED,
) -> RunPlan:
    """Finishes approved outboxes, rejects those whose gate never ran, and plans the run.

    Backfills run beside normal runs, so each looks only at what is its own: a backfill at its interval.

    Raises:
        SendLaterError: the next attempt to send one is due long from now.
        ContextureError: an approved outbox can not be sent. It stays in the way on purpose.
    """
    settled = _finish_leftovers(store, publication, request, target_for, report, events)
    target = target_for(publication, request.interval)
    if request.interval is None:
        check_ledger(store, target)
        check_topics(store, publication, target, report)
    plan = plan_run(store, publication, request, target)
    report(f"{plan.mode} run {plan.sequence}: {plan.why}")
    before = store.state.pointer().fingerprint
    events.run_started(publication, request, plan, settings=target.settings_shown(), fingerprint_before=before)
    return plan.model_copy(update={"settled": settled})


def _finish_leftovers(
    store: PublicationStore,
    publication: Publication,
    request: RunRequest,
    target_for: TargetFor,
    report: ProgressCallback,
    events: RunEvents,
) -> tuple[str, ...]:
    outboxes = store.outboxes
    finished: list[str] = []
    pending = outboxes.pending()
    count_pending(publication.name, len(pending))
    for status in pending:
        manifest = outboxes.manifest(status.outbox)
        if manifest.interval != request.interval:
            continue
        if status.status == "prepared":
            outboxes.set_status(status.outbox, "rejected", reason="its run ended before the quality gate")
            report(f"outbox {status.outbox} was prepared, but its quality was never checked: rejected")
        else:
            report(f"outbox {status.outbox} was approved and not concluded: finishing it first")
            _finish(store, manifest, target_for, report, events)
            finished.append(status.outbox)
    return tuple(finished)


def _finish(
    store: PublicationStore, manifest: Manifest, target_for: TargetFor, report: ProgressCallback, events: RunEvents
) -> None:
    publication = store.run(manifest.run).order().publication
    target = target_for(publication, manifest.interval)
    shards = [shard.shard for shard in manifest.shards if shard.records]
    shard_events = {shard: events.shard(manifest, shard) for shard in shards or [0]}
    attempts = {
        shard: build_shard_attempts(
            store, manifest.outbox, shard, publication, report=report, on_change=each.attempts_changed
        )
        for shard, each in shard_events.items()
    }
    # Brokers that are away are noticed here first: it counts as an attempt of the first shard.
    first = attempts[min(attempts)]
    first.wait_until_due()
    if first.retry_until_answered(lambda: was_made_for_other_cluster(store, manifest, target)):
        _abandon(store, manifest, report)
        return
    if manifest.interval is None:
        first.retry_until_answered(lambda: check_ledger(store, target))
    first.retry_until_answered(lambda: target.ensure_topics(store.outbox(manifest.outbox).topic_counts()))
    for shard in shards:
        send_shard(store, manifest, shard, target, attempts[shard], shard_events[shard])
    conclude_outbox(store, manifest, publication, target, now=datetime.now(UTC), report=report)


def _abandon(store: PublicationStore, manifest: Manifest, report: ProgressCallback) -> None:
    # What it was compared with is the content of the other cluster; on this one it would look complete and not be.
    reason = "the connection names another Kafka cluster now"
    require_full_run(store, f"outbox {manifest.outbox} was abandoned: {reason}")
    store.outboxes.set_status(manifest.outbox, "abandoned", reason=reason)
    report(f"outbox {manifest.outbox} is abandoned, and this run is full: {reason}")
