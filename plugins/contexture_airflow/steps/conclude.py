"""Ending a run: proof that everything is in Kafka, then state, archive and counts."""

from __future__ import annotations

from datetime import datetime

from pydantic import JsonValue

from contexture.errors import ConfigurationError
from contexture.publications import Publication
from contexture.sending import LedgerEntry
from contexture.sending.resume import find_resume_point
from contexture.sending.target import Target, TargetFor
from contexture.storage.conclusion import conclude, expire, require_full_run, was_superseded
from contexture.storage.delivery import DeadLetterIndex
from contexture.storage.home import ProgressCallback
from contexture.storage.manifests import Manifest
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.metrics import count_concluded
from contexture_airflow.run import StagedOutbox
from contexture_airflow.steps.publish import check_cluster
from contexture_airflow.steps.topic_watch import check_sent_topics


def conclude_run(
    store: PublicationStore, staged: StagedOutbox, target_for: TargetFor, report: ProgressCallback, *, now: datetime
) -> dict[str, JsonValue] | None:
    """The counts of the concluded run; None when there is nothing to conclude (dry run, superseded).

    Raises:
        ConfigurationError: a shard is not completely in Kafka, whatever Airflow says about its task, or the connection
            names another Kafka than the one that the run was for.
    """
    outboxes = store.outboxes
    manifest = outboxes.manifest(staged.outbox)
    status = outboxes.status(staged.outbox).status
    if status in {"rejected", "abandoned"}:
        report(f"outbox {staged.outbox} is {status}: nothing to conclude")
        return None
    if status == "concluded":
        return counts(manifest, store.outbox(manifest.outbox).dead_letters())
    publication = store.run(manifest.run).order().publication
    target = target_for(publication, manifest.interval)
    check_cluster(store, manifest, target)
    if not conclude_outbox(store, manifest, publication, target, now=now, report=report):
        report(f"a later outbox was sent before {staged.outbox}: abandoned, no full run is required")
        return None
    found = store.outbox(manifest.outbox).dead_letters()
    if found.count:
        report(
            f"{found.count} records can never be sent and are in {publication.dead_letter_topic}: read the reason there"
        )
    return counts(manifest, found)


def conclude_outbox(
    store: PublicationStore,
    manifest: Manifest,
    publication: Publication,
    target: Target,
    *,
    now: datetime,
    report: ProgressCallback = lambda sentence: None,
) -> bool:
    """Concludes an outbox whose records are all in Kafka; False if superseded.

    Where a topic was removed since the outbox was approved, a full run is required with it; a backfill is abandoned.

    The first time on a day (UTC), what retention says is removed: that takes a look at everything that is kept.
    """
    dead_letters = _committed(store, manifest, target)
    if dead_letters is None:
        reason = "a later outbox was sent before it"
        store.outboxes.set_status(manifest.outbox, "abandoned", reason=reason)
        return False
    check_sent_topics(store, manifest, target, report)
    if _may_have_undone(store, manifest, publication):
        reason = (
            f"backfill {manifest.outbox} was sent in parallel with other runs, and may have replaced their "
            "values by earlier ones"
        )
        require_full_run(store, reason)
    before = store.state.pointer().concluded_at
    conclude(
        store,
        manifest,
        cluster=target.cluster(),
        target=target.identity(),
        dead_letters=dead_letters,
        changes_require_full=publication.resync.on_config_change == "full",
        full_run_due=store.run(manifest.run).order().full_run_due,
        detects_deletions=publication.source.detect_deletions and not publication.source.has_log,
    )
    count_concluded(manifest, now, dead_letters.count)
    if before is None or before.date() != now.date():
        expire(store, archive_days=publication.retention.archive_days, now=now)
    return True


def counts(manifest: Manifest, dead_letters: DeadLetterIndex) -> dict[str, JsonValue]:
    """What the asset event says about a run."""
    return {
        "outbox": manifest.outbox,
        "sequence": manifest.sequence,
        "mode": manifest.mode,
        "read": manifest.read,
        "accepted": manifest.accepted,
        "unchanged": manifest.unchanged,
        "quarantined": manifest.quarantined_entities,
        "collisions": manifest.collisions,
        "skipped_newer": manifest.skipped_newer,
        "upserts": manifest.upserts,
        "deletes": manifest.deletes,
        "records": manifest.records,
        "dead_letters": dead_letters.count,
        "topics": manifest.topics,
        "transactions": manifest.transactions,
        "flush": manifest.flush,
        "baseline": manifest.baseline,
        "registry_transaction": max((part.id for shard in manifest.shards for part in shard.registry), default=None),
    }


def _may_have_undone(store: PublicationStore, manifest: Manifest, publication: Publication) -> bool:
    """Whether a backfill was to leave newer values of a replica alone, and other runs sent some meanwhile."""
    leaves_newer = manifest.mode == "backfill" and not (manifest.sends_outdated or manifest.topic_prefix)
    return leaves_newer and publication.topics.keep == "latest" and was_superseded(store, manifest)


def _committed(store: PublicationStore, manifest: Manifest, target: Target) -> DeadLetterIndex | None:
    """Sees that the ledger shows every record, or all that the registry did by them; None if something later is there.

    The tasks' own states are no proof: a person may have marked one as success. Which records went to the dead-letter
    topic is in the ledger's rows, too.
    """
    dead_letters: dict[int, tuple[int, ...]] = {}
    for shard in manifest.shards:
        if not shard.records:
            continue
        entry = target.progress(shard.shard)
        position = _position(store.reader(manifest, shard.shard), entry)
        if position is None:
            return None
        if entry is not None and entry.outbox == manifest.outbox and entry.dead_letters:
            dead_letters[shard.shard] = entry.dead_letters
        if position < shard.records:
            raise ConfigurationError(
                f"{position} of {shard.records} records of shard {shard.shard} are in Kafka",
                next_step="clear the publish task of that shard, or start a new run: it finishes this outbox first",
                outbox=manifest.outbox,
                shard=shard.shard,
            )
    return DeadLetterIndex(shards=dead_letters)


def _position(reader: OutboxShardReader, entry: LedgerEntry | None) -> int | None:
    """Up to where a shard is in Kafka, by any sender; None if a later outbox is in the ledger."""
    if entry is None or entry.outbox == reader.outbox_id:
        return entry.position if entry else 0
    if reader.registry and entry.source_place is not None:
        start = find_resume_point(reader, entry)
        return None if start.superseded else start.position
    return None if entry.sequence > reader.sequence else 0
