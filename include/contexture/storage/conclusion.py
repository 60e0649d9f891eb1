"""The end of a run: state advances by one pointer; a run that a newer one has superseded changes nothing.

Concluding twice is harmless, and a process that dies in between leaves either the old state or the new one.

On a replica a backfill leaves out what the target has newer, by the state when it is prepared. State does not yet show
what a run sends after that or at that moment, and nothing keeps the backfill's records and the run's in one order. So
the earlier value may come after the newer one in the topic, and no later run would notice: state has the newer one.

What is older than the archive is removed then, so that a home does not grow without limit. Outboxes at their end are
removed with all that belongs to their runs. Runs that failed before there was an outbox left only what they had read;
those that failed while they made one left pieces of it. A killed process may have left half of a file in state.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import pyarrow as pa

from contexture.errors import ConfigurationError, DefectError
from contexture.storage.delivery import DeadLetterIndex
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.incompleteness import incompleteness_after
from contexture.storage.known_topics import LostTopics, lost_topics
from contexture.storage.manifests import LandingManifest, Manifest
from contexture.storage.outboxes import ENDS, Outboxes, OutboxStatus
from contexture.storage.paths import PublicationPaths
from contexture.storage.publication_store import PublicationStore, RunStore
from contexture.storage.quarantine_retry import mark_retried
from contexture.storage.state import FORMAT, StatePointer
from contexture.storage.state_updates import advance, mark_undelivered

NONE_DEAD = DeadLetterIndex()
"""For outboxes whose records are all where they belong."""


def conclude(
    store: PublicationStore,
    manifest: Manifest,
    *,
    cluster: str | None,
    target: str | None,
    dead_letters: DeadLetterIndex = NONE_DEAD,
    changes_require_full: bool = False,
    full_run_due: str | None = None,
    detects_deletions: bool = False,
) -> StatePointer:
    """Makes what the outbox sent the state that the next run compares with, then marks the outbox concluded.

    The caller has seen every shard committed. A backfill's outbox touches neither state nor watermark. One that tried
    quarantined events again leaves the watermark as it is, and adds its fingerprint and target to those of before.

    Args:
        store: of the publication.
        manifest: of the outbox.
        cluster: id of the Kafka cluster.
        target: identity of the target connection.
        dead_letters: records of which state says that the target does not have them.
        changes_require_full: a run that sent changes alone leaves a full run due where publication or target changed.
        full_run_due: why a full run was due when the run began to read. A full run settles this, and not what came
            later.
        detects_deletions: state says since when reads of the source are incomplete.

    Raises:
        ConfigurationError: the outbox is not approved; state stays as it is.
        RetriableError: the storage failed, or another process moved state on; concluding again ends what was begun.
    """
    outboxes, state = store.outboxes, store.state
    outboxes.check_transition(manifest.outbox, "concluded")
    pointer = state.pointer()
    store.outbox(manifest.outbox).write_dead_letters(dead_letters)
    if manifest.mode != "backfill" and pointer.sequence < manifest.sequence:
        mark_undelivered(store, pointer, manifest, dead_letters.shards)
        # A run that did not read everything shows nothing of the whole: a full run stays due for what changed before.
        stays_due = manifest.retried is not None or (changes_require_full and manifest.mode != "full")
        made_by = _MadeBy(manifest.fingerprint, cluster, target)
        still_due = None if manifest.mode == "full" and pointer.full_run_due == full_run_due else pointer.full_run_due
        still_lost = pointer.lost_topics if still_due else None
        before = pointer
        at = datetime.now(UTC)
        advanced = _advance(store, pointer, manifest, made_by.after(pointer) if stays_due else made_by, still_due, at)
        unseen = incompleteness_after(_landing(store, manifest), pointer.incomplete, at) if detects_deletions else None
        pointer = advanced.model_copy(update={"incomplete": unseen, "lost_topics": still_lost})
        state.commit(pointer, after=before)
        _remove_unused(state.folder, {*before.files, *pointer.files, before.types, pointer.types})
    mark_retried(store, manifest)
    # After the state, which knows what was sent; before the status, because a concluded outbox is not concluded again.
    store.release_claim(manifest.outbox)
    outboxes.set_status(manifest.outbox, "concluded", reason=_describe_commit(manifest, dead_letters))
    return pointer


def _landing(store: PublicationStore, manifest: Manifest) -> LandingManifest | None:
    try:
        return store.landing(manifest.run).find_manifest()
    except DefectError:
        return None


def _describe_commit(manifest: Manifest, dead_letters: DeadLetterIndex) -> str:
    aside = f", {dead_letters.count} of them to the dead-letter topic" if dead_letters.count else ""
    return f"{manifest.records} records committed{aside}"


def require_full_run(store: PublicationStore, reason: str) -> None:
    """Makes the next run of a publication send everything."""
    state = store.state
    state.commit(state.pointer().model_copy(update={"full_run_due": reason}))


def require_topics_again(store: PublicationStore, topics: Iterable[str], at: datetime) -> LostTopics:
    """Makes the next run of a publication send everything, because topics were removed that held something of it.

    Args:
        store: of the publication.
        topics: the names of those that were removed.
        at: when that was noticed. A full run that began to read before does not fill them.

    Returns:
        Them and those that were noticed before and are not yet filled again.

    Raises:
        RetriableError: the storage failed, or state was moved on by another process at this moment.
    """
    state = store.state
    pointer = state.pointer()
    lost = lost_topics(topics, at, pointer.lost_topics)
    state.commit(pointer.model_copy(update={"full_run_due": lost.sentence, "lost_topics": lost}), after=pointer)
    return lost


class _MadeBy(NamedTuple):
    """What a state was made by: a change of it is a reason to send everything."""

    fingerprint: str
    cluster: str | None
    target: str | None

    def after(self, pointer: StatePointer) -> _MadeBy:
        """What a state is made by where only some of its records are from this run.

        A field that differs becomes a text that names both. It is equal to neither, so going back to the former
        publication or Kafka is a change too: the records of this run are still there in the new form.
        """
        return _MadeBy(
            _both(pointer.fingerprint, self.fingerprint) or self.fingerprint,
            _both(pointer.cluster, self.cluster),
            _both(pointer.target, self.target),
        )


_AND = " and "


def _both(before: str | None, now: str | None) -> str | None:
    if before is None or now is None or now == before or _AND in before:
        return before or now
    return f"{before}{_AND}{now}"


def _advance(
    store: PublicationStore,
    pointer: StatePointer,
    manifest: Manifest,
    made_by: _MadeBy,
    full_run_due: str | None,
    concluded_at: datetime,
) -> StatePointer:
    written = advance(store.state, pointer, store.outbox(manifest.outbox).state_delta, manifest.sequence)
    return StatePointer(
        generation=pointer.generation + 1,
        sequence=manifest.sequence,
        outbox=manifest.outbox,
        files=written.files,
        rows=written.rows,
        identities=written.identities,
        watermark=manifest.watermark or pointer.watermark,
        fingerprint=made_by.fingerprint,
        cluster=made_by.cluster,
        target=made_by.target,
        full_run_due=full_run_due,
        concluded_at=concluded_at,
        format=FORMAT,
        types=_types(store, pointer, manifest),
        full_concluded_at=concluded_at if manifest.mode == "full" else pointer.full_concluded_at,
    )


def _types(store: PublicationStore, pointer: StatePointer, manifest: Manifest) -> str | None:
    """The file of the NGSI types that attributes have had, with those that the outbox's run saw."""
    state, seen = store.state, store.outbox(manifest.outbox).seen_types()
    if seen is None:
        return pointer.types
    name = f"types-{manifest.sequence:012d}.json"
    known = state.attribute_types(pointer).after(seen, whole=manifest.mode == "full")
    state.folder.write(name, known.to_json())
    return name


def _remove_unused(folder: StoredFolder, used: set[str | None]) -> None:
    # The files of the generation before stay, for anyone who is reading them just now.
    for name in (*folder.files(".parquet"), *folder.files(".json")):
        if name not in used:
            folder.remove(name)


Place = tuple[str, bytes | None]
"""A topic and a key."""


def was_superseded(store: PublicationStore, backfill: Manifest) -> bool:
    """Whether a normal run that was not concluded when a backfill was prepared has records for a key of it.

    Where the archive has lost such a run, it is taken for one that has.

    Raises:
        DefectError: a document or a file of an outbox is damaged.
        RetriableError: the storage failed.
    """
    outboxes = store.outboxes
    concluded = store.state.pointer().generation - backfill.state_generation
    if concluded == 0 and not _is_sending(outboxes):
        return False
    sent: frozenset[Place] | None = None
    for run in _newest_first(outboxes):
        if run.state_generation < backfill.state_generation:
            break
        concluded -= outboxes.status(run.outbox).status == "concluded"
        if run.records:
            sent = frozenset(_places(store, backfill)) if sent is None else sent
            if any(place in sent for place in _places(store, run)):
                return True
    return concluded > 0


def _is_sending(outboxes: Outboxes) -> bool:
    """Whether a normal run is being sent, which costs less to see than what all runs were."""
    approved = (item.outbox for item in outboxes.pending() if item.status == "approved")
    return any(outboxes.manifest(outbox).mode != "backfill" for outbox in approved)


def _newest_first(outboxes: Outboxes) -> Iterator[Manifest]:
    """The normal runs that were approved or concluded."""
    for item in reversed(outboxes.all()):
        if item.status in {"approved", "concluded"}:
            manifest = outboxes.manifest(item.outbox)
            if manifest.mode != "backfill":
                yield manifest


def _places(store: PublicationStore, manifest: Manifest) -> Iterator[Place]:
    for shard in manifest.shards:
        if shard.file is None:
            continue
        folder = store.outbox(manifest.outbox).shard(shard.shard)
        with folder.translate_read_errors(shard.file):
            table = folder.table(shard.file, columns=["topic", "key"])
        yield from zip(
            table.column("topic").cast(pa.string()).to_pylist(), table.column("key").to_pylist(), strict=True
        )


_LONGEST_WRITE: Final = timedelta(days=1)


def expire(store: PublicationStore, *, archive_days: int, now: datetime) -> list[str]:
    """Removes what is older than the archive; gives the ids of the outboxes among it.

    Raises:
        RetriableError: the storage failed; doing it again ends what was begun.
    """
    outboxes, home, paths = store.outboxes, store.home, PublicationPaths(store.name)
    limit = now.astimezone(UTC) - timedelta(days=archive_days)
    known = outboxes.all()
    old = {item.outbox for item in known if item.status in ENDS and item.steps[-1].at < limit}
    for outbox in old:
        _remove_outbox(home, paths, outbox, outboxes.manifest(outbox).run)
    _remove_pieces(home, paths, {item.outbox for item in known}, limit)
    _remove_fruitless(store, [item for item in known if item.outbox not in old], limit)
    _remove_begun(store.state.folder, now.astimezone(UTC) - _LONGEST_WRITE)
    return [item.outbox for item in known if item.outbox in old]


def _remove_outbox(home: FileTree, paths: PublicationPaths, outbox: str, run: str) -> None:
    # The status goes near the end: while it is there, a removal that was cut short is done again. The manifest, which
    # that needs, goes after it; without a status the rest goes as pieces.
    for path in (
        paths.landing(run),
        paths.orders(run),
        paths.quarantine(outbox),
        paths.report(outbox),
        paths.status(outbox),
        paths.outbox(outbox),
    ):
        home.remove(path)


def _remove_pieces(home: FileTree, paths: PublicationPaths, known: Container[str], limit: datetime) -> None:
    """Removes what belongs to no outbox that has a status: it was never ready, or its removal was cut short."""
    for parts in (paths.quarantines(), paths.reports(), paths.outboxes()):
        for outbox, at in home.written_at(parts).items():
            if outbox not in known and at < limit:
                home.remove(f"{parts}/{outbox}")


def _remove_fruitless(store: PublicationStore, kept: Iterable[OutboxStatus], limit: datetime) -> None:
    """Removes the orders and landings of runs without an outbox."""
    old = {run for run, at in store.runs.written_at().items() if at < limit}
    if not old:
        return
    try:
        used = {store.outboxes.manifest(item.outbox).run for item in kept}
    except (ConfigurationError, DefectError):
        # Which of them have an outbox is not known: then none is treated as one without.
        return
    sequence = store.state.pointer().sequence
    for run in old - used:
        if _is_over(store.run(run), sequence):
            # The order goes last: while it is there, a removal that was cut short is done again.
            for folder in (store.run(run).work, store.landing(run), store.run(run)):
                folder.remove()


def _is_over(run: RunStore, sequence: int) -> bool:
    """Returns whether a run cannot continue: a later one has concluded. One that waits for an answer still can."""
    try:
        order = run.order()
    except (FileNotFoundError, DefectError):
        return True
    except ConfigurationError:
        # A later Contexture wrote it.
        return False
    return order.mode == "backfill" or order.sequence <= sequence


def _remove_begun(folder: StoredFolder, limit: datetime) -> None:
    """Removes files that were begun and never got their names."""
    for name, at in folder.written_at().items():
        if name.startswith(".") and at < limit:
            folder.remove(name)
