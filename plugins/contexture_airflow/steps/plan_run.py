"""The plan of a run: its mode, its number, the folder of its files."""

from __future__ import annotations

from datetime import UTC
from itertools import count

from contexture.errors import ConfigurationError
from contexture.publications import Publication, SdmxPublication, fingerprint
from contexture.sending.target import Target
from contexture.storage.archive import Interval
from contexture.storage.manifests import Mode
from contexture.storage.orders import ReplayOptions
from contexture.storage.publication_store import PublicationStore, run_name
from contexture.storage.quarantine_retry import resolve
from contexture.storage.state import StatePointer
from contexture_airflow.run import RunPlan, RunRequest


def plan_first_run(publication: Publication, request: RunRequest) -> tuple[Mode, str]:
    """The mode of the first run, and why: a registry is idle until its next change unless someone wants everything."""
    if not publication.source.has_log:
        return "full", "the first run"
    if request.mode == "full":
        return "full", request.reason or "asked for"
    if publication.resync.on_startup == "full":
        return "full", "the first run, and resync.on_startup is full"
    if request.mode == "auto" and publication.source.mode == "full":
        return "full", "the publication's own mode"
    policy = publication.resync.on_startup
    return "changes", f"the first run records what the registry holds and sends nothing (resync.on_startup is {policy})"


def is_baseline(publication: Publication, pointer: StatePointer, mode: Mode) -> bool:
    """Whether what the registry holds becomes state, and nothing is sent."""
    return publication.source.has_log and pointer.outbox is None and mode == "changes"


def sent_by_other_instances(
    publication: Publication, pointer: StatePointer, request: RunRequest, target: Target
) -> int | None:
    """Returns the registry transaction up to which the ledger has the log, for a first run; None for all others.

    What another instance has not published yet would be lost if this one published something later first. A run in mode
    full sends everything, so it needs no such number.
    """
    begins = publication.source.has_log and pointer.outbox is None and request.interval is None
    return target.sent_log_position() if begins and request.mode != "full" else None


def check_selectors(publication: SdmxPublication) -> None:
    """Refuses what a registry can't be asked for, before anything is read.

    Raises:
        SelectorError: a selector of the publication can't be read.
    """
    # The splitter behind it would be loaded by every settle of every publication.
    from contexture.sources.sdmx.selectors import unreadable

    for _, error in unreadable(publication):
        raise error


def check_republish(publication: Publication, request: RunRequest, mode: Mode) -> None:
    """Refuses to send single transactions of a registry again.

    Raises:
        ConfigurationError: `republish` without mode full.
    """
    if request.republish and publication.source.has_log and mode == "changes":
        raise ConfigurationError(
            "a transaction of the registry that the ledger has is never sent twice",
            next_step="to send everything again, start a run in mode full",
            publication=publication.name,
        )


def plan_run(
    store: PublicationStore, publication: Publication, request: RunRequest, target: Target, *, run: str | None = None
) -> RunPlan:
    """The plan of a run, made when nothing of earlier runs is left to finish.

    Args:
        run: folder of the run when it has one already.
    """
    pointer = store.state.pointer()
    check_replay(publication, request)
    if isinstance(publication, SdmxPublication):
        check_selectors(publication)
    if request.retry_quarantine is not None and request.interval is None:
        resolve(store, request.retry_quarantine, request.retry_rules)
    own = fingerprint(publication)
    changed, elsewhere = find_difference(pointer, own, target), find_target_difference(pointer, target)
    mode, why = decide(publication, pointer, request, changed, elsewhere)
    check_republish(publication, request, mode)
    return RunPlan(
        run=run or choose_run_name(store, request.run_id),
        mode=mode,
        sequence=next_sequence(store, pointer, request.interval, target),
        fingerprint=own,
        why=why,
        baseline=is_baseline(publication, pointer, mode),
        cluster=target.cluster(),
        log_sent_to=sent_by_other_instances(publication, pointer, request, target),
    )


def decide(
    publication: Publication,
    pointer: StatePointer,
    request: RunRequest,
    changed: str | None,
    elsewhere: str | None = None,
) -> tuple[Mode, str]:
    """The mode of a run and why it is that.

    Args:
        publication: whose run.
        pointer: the state after the last concluded run.
        request: what is asked for.
        changed: what is no longer as it was then.
        elsewhere: that of it by which records go to another Kafka.
    """
    if request.interval is not None:
        return "backfill", f"the interval from {request.interval[0]:%Y-%m-%d %H:%M} is sent again"
    if request.retry_quarantine is not None:
        return _retry(pointer, request.retry_quarantine)
    if pointer.full_run_due:
        return "full", f"a full run is required: {pointer.full_run_due}"
    if pointer.outbox is None:
        return plan_first_run(publication, request)
    if elsewhere and publication.source.has_log:
        # A registry's log says nothing of what the other Kafka lacks.
        return "full", elsewhere
    if not changed and _is_loaded_since(pointer, request):
        # Also where each run of the publication is full: a start, or a change, requires everything once.
        own = publication.source.mode
        return "changes" if own == "full" else own, f"everything was sent since {request.since:%Y-%m-%d %H:%M:%S} UTC"
    if request.mode != "auto":
        return request.mode, request.reason or "asked for"
    if changed and publication.resync.on_config_change == "full":
        return "full", changed
    return publication.source.mode, f"the publication's own mode{f' ({changed})' if changed else ''}"


def _is_loaded_since(pointer: StatePointer, request: RunRequest) -> bool:
    """Whether a full run has concluded since the start or change that this run was requested for."""
    return (
        request.since is not None
        and pointer.full_concluded_at is not None
        and pointer.full_concluded_at >= request.since.astimezone(UTC)
    )


def check_replay(publication: Publication, request: RunRequest) -> None:
    """Refuses to send what is read now to other topics: state would take them for the publication's own.

    Raises:
        ConfigurationError: a normal run has the options of a backfill.
    """
    if request.interval is None and request.replay != ReplayOptions():
        raise ConfigurationError(
            "replay_from, replay_incomplete, replay_outdated and topic_prefix are for backfills, and this is a run "
            "that reads the source as it is now",
            next_step="start a backfill of the DAG, or leave these params as they are",
            publication=publication.name,
        )


def _retry(pointer: StatePointer, outbox: str) -> tuple[Mode, str]:
    # Whatever else is due stays due: conclude does not take this run for one that read the source.
    if pointer.outbox is None:
        raise ConfigurationError(
            "nothing was published yet, so there is nothing to compare quarantined events with",
            next_step="start a run without retry_quarantine: it reads everything anyway",
        )
    return "changes", f"what {outbox} quarantined is retried"


def find_difference(pointer: StatePointer, own_fingerprint: str, target: Target) -> str | None:
    """What is no longer as it was when the last run concluded; None when all is."""
    if pointer.fingerprint not in {None, own_fingerprint}:
        return "the publication has changed"
    return find_target_difference(pointer, target)


def find_target_difference(pointer: StatePointer, target: Target) -> str | None:
    """By what records go to another Kafka than those of the last concluded run; None when they don't."""
    if pointer.cluster not in {None, target.cluster()}:
        return "the Kafka cluster is another one"
    if pointer.target not in {None, target.identity()}:
        return "the Kafka connection is another one"
    return None


def next_sequence(store: PublicationStore, pointer: StatePointer, interval: Interval | None, target: Target) -> int:
    """One more than everything that was concluded, waits, or is in the ledger; backfilled intervals count alone."""
    outboxes = store.outboxes
    waiting = [status for status in outboxes.pending() if outboxes.manifest(status.outbox).interval == interval]
    concluded = 0 if interval is not None else pointer.sequence
    return 1 + max(concluded, target.highest_sequence(), *(status.sequence for status in waiting))


def choose_run_name(store: PublicationStore, run_id: str) -> str:
    """A folder name for the run; another one when the run was done before and is cleared: it must read anew."""
    names = (run_name(run_id if attempt == 1 else f"{run_id}#{attempt}") for attempt in count(1))
    return next(name for name in names if not store.run(name).has_order())
