"""Checks that the topics a publication sent to are the ones it sent to: one that was removed lacks what state says.

Kafka gives a topic an id that changes when it is removed and made again. Ids are recorded before an outbox is approved,
and compared when the next run begins, at its own gate, and before the outbox is concluded: one request each for all
topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from contexture.errors import ConfigurationError
from contexture.kafka.topic_identities import HIDDEN
from contexture.publications import Publication
from contexture.sending.target import Target
from contexture.storage.conclusion import require_topics_again
from contexture.storage.home import ProgressCallback
from contexture.storage.known_topics import (
    KnownTopics,
    held_topics,
    lost_topics,
)
from contexture.storage.manifests import Manifest
from contexture.storage.publication_store import PublicationStore

_HELD = ["topics", "withheld"]


def check_topics(store: PublicationStore, publication: Publication, target: Target, report: ProgressCallback) -> None:
    """Makes the run that begins a full one, where a topic was removed that state says holds something.

    The first time, what is there becomes known. Events of Contexture itself have no state that could hold them.
    """
    if not publication.source.has_content:
        return
    known = _known_on(store, target)
    if known is None:
        _adopt(store, publication, target, report)
        return
    now = target.topic_ids(known.ids)
    lost = _lost(known.ids, now)
    if lost:
        _require_again(store, _held(store, lost), report)
        _write(store, target, {**_without(known, lost), **_seen(now)})


def record_topics(
    store: PublicationStore,
    manifest: Manifest,
    publication: Publication,
    target: Target,
    topics: Iterable[str],
    report: ProgressCallback,
) -> None:
    """Records which topics an outbox is sent to, when they exist and before the first of its records.

    A topic that was removed since the run began requires another run, a full one, because this one may send changes
    alone. What a backfill sends is no part of state: only its own outbox is compared.
    """
    if not publication.source.has_content:
        return
    ids = _seen(target.topic_ids(topics, all_exist=True))
    if not ids:
        return
    store.outbox(manifest.outbox).write_approved_topics(KnownTopics(cluster=target.cluster(), ids=ids))
    if manifest.mode == "backfill":
        return
    known = _known_on(store, target)
    before = known.ids if known else {}
    lost = {name for name, topic_id in ids.items() if before.get(name, topic_id) != topic_id}
    _require_again(store, _held(store, lost), report)
    _write(store, target, {**before, **ids})


def check_sent_topics(store: PublicationStore, manifest: Manifest, target: Target, report: ProgressCallback) -> None:
    """Before an outbox is concluded: what was sent of it is still there, or a full run is required.

    Raises:
        ConfigurationError: the outbox is a backfill's, which no other run sends again. It is abandoned.
    """
    approved = store.outbox(manifest.outbox).approved_topics()
    if approved is None or approved.cluster != target.cluster():
        return
    now = target.topic_ids(approved.ids)
    lost = _lost(approved.ids, now)
    if not lost:
        return
    if manifest.mode == "backfill":
        raise _abandoned(store, manifest, lost)
    _require_again(store, lost, report)
    known = _known_on(store, target)
    _write(store, target, {**_without(known, lost), **_seen(now)})


def _adopt(store: PublicationStore, publication: Publication, target: Target, report: ProgressCallback) -> None:
    """Records the topics of a state of which nothing is recorded yet, as they are now."""
    pointer = store.state.pointer()
    if pointer.outbox is None or pointer.cluster != target.cluster():
        return
    held = _held(store, None)
    now = target.topic_ids(held)
    if not publication.source.has_log:
        # A registry's first run puts into state what it never sent, so that its topics need not exist.
        _require_again(store, held - set(now), report)
    _write(store, target, _seen(now))


def _lost(recorded: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """The topics that are missing or other ones; of one that may not be seen nothing is known."""
    return {name for name, topic_id in recorded.items() if now.get(name) not in {topic_id, HIDDEN}}


def _seen(ids: Mapping[str, str]) -> dict[str, str]:
    return {name: topic_id for name, topic_id in ids.items() if topic_id != HIDDEN}


def _without(known: KnownTopics | None, lost: set[str]) -> dict[str, str]:
    return {name: topic_id for name, topic_id in (known.ids if known else {}).items() if name not in lost}


def _require_again(store: PublicationStore, lost: Iterable[str], report: ProgressCallback) -> None:
    names = sorted(lost)
    if not names:
        return
    found = require_topics_again(store, names, datetime.now(UTC))
    report(f"warning: {found.sentence}, and contained what was sent: a full run sends everything to them again")


def _held(store: PublicationStore, among: set[str] | None) -> set[str]:
    """The topics that state says hold something, of all or of these; a removed topic that held nothing is no loss."""
    if among is not None and not among:
        return set()
    state = store.state
    return held_topics(state.reader(state.pointer()).pieces(_HELD), among)


def _abandoned(store: PublicationStore, manifest: Manifest, lost: set[str]) -> ConfigurationError:
    found = lost_topics(lost, datetime.now(UTC)).sentence
    store.outboxes.set_status(manifest.outbox, "abandoned", reason=found)
    return ConfigurationError(
        f"{found}, while the backfill {manifest.outbox} was sent to it: it is not complete there, and abandoned",
        next_step="start the backfill of this interval again",
        publication=manifest.publication,
        outbox=manifest.outbox,
    )


def _known_on(store: PublicationStore, target: Target) -> KnownTopics | None:
    """What is known of the topics on this cluster: another one has topics of its own."""
    known = store.known_topics()
    return known if known is not None and known.cluster == target.cluster() else None


def _write(store: PublicationStore, target: Target, ids: dict[str, str]) -> None:
    store.write_known_topics(KnownTopics(cluster=target.cluster(), ids=ids))
