"""The gate between preparing and sending: nothing below it is sent without a good verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from contexture.errors import ConfigurationError, DefectError, RejectedError, RetriableError
from contexture.monitoring.alerts import AlertKind
from contexture.publications import Publication, SdmxPublication
from contexture.sending.target import Target, TargetFor
from contexture.storage.home import ProgressCallback
from contexture.storage.manifests import Manifest, QualityVerdict
from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.run import StagedOutbox
from contexture_airflow.steps.topic_watch import record_topics

_PREVIEWED_TOPICS = 20
_VOLUME = "volume"
_MISSING_SHOWN = 20
_REPLAYED_FROM = {
    "archive": "the archive: what was sent at that time",
    "source": "what the source stores of that time",
    None: "what was prepared by an earlier version",
}
_REVIEW = "read the data quality report; correct the source or the publication's quality section, then start a new run"
_EMPTY_REGISTRY = (
    "check that source.select names agencies and structures as the registry has them, and that the connection's user "
    "may see them, then start a new run; if there may be none, set quality.minimum_entities to 0"
)
_EMPTY_SOURCE = (
    "a broker also returns nothing for a service that does not exist: check that source.service, service_path and "
    "types are spelt as at the broker (contexture check shows its response), and start a new run; if the source may "
    "be empty, set quality.minimum_entities to 0"
)


def apply_verdict(
    store: PublicationStore, staged: StagedOutbox, *, dry_run: bool, target_for: TargetFor, report: ProgressCallback
) -> list[int]:
    """The shards to send, after approving the outbox; none after a dry run, whose outbox is rejected.

    Raises:
        RejectedError: a critical expectation failed. The outbox is rejected; none of it will ever be sent.
        ConfigurationError: the outbox is at its end already, its topics can not be made, or a message of a whole
            transaction is too large for them.
    """
    outboxes = store.outboxes
    manifest = outboxes.manifest(staged.outbox)
    _check_open(outboxes, manifest)
    publication = store.run(manifest.run).order().publication
    _check_verdict(outboxes, manifest, _verdict(store, manifest), _next_step(manifest, publication), report)
    topics = store.outbox(manifest.outbox).topic_counts()
    if manifest.collisions:
        report(f"{manifest.collisions} events have a topic that another identity uses: the report shows which")
    for sentence in describe_replay(manifest, publication):
        report(sentence)
    if manifest.transcoded:
        report(f"{manifest.transcoded} structures were converted: the report shows what was lost")
    if dry_run:
        _preview(manifest, topics, report)
        outboxes.set_status(manifest.outbox, "rejected", reason="dry run")
        return []
    target = target_for(publication, manifest.interval)
    if manifest.baseline:
        report("baseline: what the registry holds becomes state, and nothing is sent until it changes")
        _set_log_start(store, manifest, target)
    target.ensure_topics(topics)
    _check_sizes(store, manifest, publication, topics, target)
    record_topics(store, manifest, publication, target, topics, report)
    _claim(store, manifest, topics, target, report)
    _warn_of_ledger(target, report)
    outboxes.set_status(manifest.outbox, "approved", reason="every critical expectation holds")
    report(f"approved: {manifest.records} records for {len(topics)} topics")
    return [shard.shard for shard in manifest.shards if shard.records]


def _check_sizes(
    store: PublicationStore, manifest: Manifest, publication: Publication, topics: Collection[str], target: Target
) -> None:
    """A message of a whole transaction grows with the registry: its size is known before anything is sent."""
    if not isinstance(publication, SdmxPublication) or publication.message.bundle == "artefact":
        return
    for shard in manifest.shards:
        if shard.records:
            target.check_sizes(store.reader(manifest, shard.shard), topics, shard.bytes)


def _set_log_start(store: PublicationStore, manifest: Manifest, target: Target) -> None:
    """Lets an instance that has published nothing begin where the others are, if there are any.

    Began it later, no instance would publish what is between: the others leave out what is below its transactions.
    Where the run knew how far they were, its pull has seen that nothing of what lies between is selected.
    """
    if not (manifest.watermark or "").isdecimal():
        return
    newest = int(manifest.watermark or 0)
    sent_to = target.set_log_start(manifest, newest)
    seen_from = store.run(manifest.run).order().log_sent_to
    if sent_to < newest and (seen_from is None or sent_to < seen_from):
        raise RetriableError(
            f"another instance has published this registry up to transaction {sent_to}, and the registry is at "
            f"{newest}: an instance that begins now would leave out the transactions in between",
            next_step="wait until the other instance has published it and start a new run; where no other one runs "
            "any more, or they are not selected, start a run in mode full",
            outbox=manifest.outbox,
        )


def describe_replay(manifest: Manifest, publication: Publication) -> Iterator[str]:
    """What a person should know of a backfill before it is sent; nothing for normal runs."""
    if manifest.mode != "backfill":
        return
    yield f"sent again from {_REPLAYED_FROM[manifest.replayed_from]}"
    if manifest.topic_prefix:
        yield f"to topics that begin with {manifest.topic_prefix}"
    for missing in manifest.missing[:_MISSING_SHOWN]:
        yield f"missing, and not replaced: {missing}"
    if len(manifest.missing) > _MISSING_SHOWN:
        yield f"and {len(manifest.missing) - _MISSING_SHOWN} more are missing"
    if manifest.skipped_newer:
        yield f"{manifest.skipped_newer} records are left out, because the target holds something newer"
    if publication.topics.keep == "latest" and manifest.sends_outdated and not manifest.topic_prefix:
        yield "on compacted topics, old values replace newer ones, because replay_outdated is send"


def _claim(
    store: PublicationStore, manifest: Manifest, topics: Collection[str], target: Target, report: ProgressCallback
) -> None:
    why = _why_all_shards(store, manifest)
    if why:
        report(f"the senders of all shards are fenced before anything is sent: {why}")
    if target.claim(manifest, clears=topics if why else None):
        return
    store.outboxes.set_status(manifest.outbox, "abandoned", reason="a later outbox was sent before it")
    raise ConfigurationError(
        f"outbox {manifest.outbox} is too late: a later one was sent already",
        next_step="do nothing if another instance publishes this too; otherwise start a new run",
        outbox=manifest.outbox,
        alert=AlertKind.OVERTAKEN,
    )


def _why_all_shards(store: PublicationStore, manifest: Manifest) -> str:
    """Why a live sender of an earlier outbox could write a key that another shard sends now; "" where none could.

    A key has one shard while their number stays: its own sending fences every earlier sender of it.
    """
    if store.outboxes.abandoned():
        return "an outbox was abandoned, and a sender of it may be alive"
    last = store.state.pointer().outbox
    if last is None:
        return ""
    try:
        shards = len(store.outboxes.manifest(last).shards)
    except (ConfigurationError, DefectError):
        return f"it is not known how many shards outbox {last} had"
    return "" if shards == len(manifest.shards) else f"there were {shards} shards, and are {len(manifest.shards)} now"


def _warn_of_ledger(target: Target, report: ProgressCallback) -> None:
    copies = target.ledger_copies()
    if copies is not None and copies.weakness:
        report(f"warning: {copies.weakness}: a broker that fails may leave it behind the topics. Next: {copies.remedy}")


def _check_open(outboxes: Outboxes, manifest: Manifest) -> None:
    status = outboxes.status(manifest.outbox).status
    if status not in {"prepared", "approved"}:
        raise ConfigurationError(
            f"outbox {manifest.outbox} is {status} already, which is final",
            next_step="start a new run, or clear this one from settle on, so that the source is read again",
            outbox=manifest.outbox,
        )


def _verdict(store: PublicationStore, manifest: Manifest) -> QualityVerdict:
    try:
        return store.outbox(manifest.outbox).verdict()
    except FileNotFoundError as error:
        raise DefectError(
            f"outbox {manifest.outbox} has no verdict",
            next_step="clear stage, then report this",
            outbox=manifest.outbox,
        ) from error


def _next_step(manifest: Manifest, publication: Publication) -> str:
    """What to do about a failed expectation."""
    if manifest.source_count or manifest.read:
        return _REVIEW
    return _EMPTY_REGISTRY if isinstance(publication, SdmxPublication) else _EMPTY_SOURCE


def _check_verdict(
    outboxes: Outboxes, manifest: Manifest, verdict: QualityVerdict, next_step: str, report: ProgressCallback
) -> None:
    for failed in verdict.failures:
        report(f"{failed.severity}: {failed.description} ({failed.observed})")
    if verdict.approved:
        if any(failed.name == _VOLUME for failed in verdict.failures):
            report(f"nothing is sent, because the source has nothing yet. If it should have: {next_step}")
        return
    critical = [failed for failed in verdict.failures if failed.severity == "critical"]
    reasons = "; ".join(f"{failed.name}: {failed.description}, found {failed.observed}" for failed in critical)
    outboxes.set_status(manifest.outbox, "rejected", reason=f"critical expectations failed: {reasons}")
    raise RejectedError(
        f"{_counted(len(critical))} failed, so nothing is sent: {reasons}",
        next_step=next_step,
        publication=manifest.publication,
        outbox=manifest.outbox,
        alert=AlertKind.CRITICAL_EXPECTATION,
    )


def _counted(critical: int) -> str:
    return "1 critical expectation" if critical == 1 else f"{critical} critical expectations"


def _preview(manifest: Manifest, topics: dict[str, int], report: ProgressCallback) -> None:
    if manifest.baseline:
        report(f"dry run: {manifest.source_count} structures would be recorded, and nothing sent: it is the first run")
        return
    report(f"dry run: {manifest.records} records would go to {len(topics)} topics")
    for topic, records in list(topics.items())[:_PREVIEWED_TOPICS]:
        report(f"  {topic}: {records}")
    if len(topics) > _PREVIEWED_TOPICS:
        report(
            f"  and {len(topics) - _PREVIEWED_TOPICS} more topics: contexture outbox show {manifest.outbox} --json "
            "lists them"
        )
