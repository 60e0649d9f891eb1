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
from contexture.sending.target import Report, Target
from contexture.storage.conclusion import require_topics_again
from contexture.storage.home import Storage
from contexture.storage.known_topics import (
    KnownTopics,
    approved_topics,
    held_topics,
    known_topics,
    lost_topics,
    write_approved_topics,
    write_known_topics,
)
from contexture.storage.manifests import Manifest
from contexture.storage.outboxes import Outboxes
from contexture.storage.state import State

_HELD = ["topics", "withheld"]


def check_topics(storage: Storage, publication: Publication, target: Target, report: Report) -> None:
    """Makes the run that begins a full one, where a topic was removed that state says holds something.

    The first time, what is there becomes known. Events of Contexture itself have no state that could hold them.
    """
    if not publication.source.has_content:
        return
    known = _known_on(storage, publication.name, target)
    if known is None:
        _adopt(storage, publication, target, report)
        return
    now = target.topic_ids(known.ids)
    lost = _lost(known.ids, now)
    if lost:
        _require_again(storage, publication.name, _held(storage, publication.name, lost), report)
        _write(storage, publication.name, target, {**_without(known, lost), **_seen(now)})


def record_topics(
    storage: Storage,
    manifest: Manifest,
    publication: Publication,
    target: Target,
    topics: Iterable[str],
    report: Report,
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
    write_approved_topics(storage, manifest, KnownTopics(cluster=target.cluster(), ids=ids))
    if manifest.mode == "backfill":
        return
    known = _known_on(storage, manifest.publication, target)
    before = known.ids if known else {}
    lost = {name for name, topic_id in ids.items() if before.get(name, topic_id) != topic_id}
    _require_again(storage, manifest.publication, _held(storage, manifest.publication, lost), report)
    _write(storage, manifest.publication, target, {**before, **ids})


def check_sent_topics(storage: Storage, manifest: Manifest, target: Target, report: Report) -> None:
    """Before an outbox is concluded: what was sent of it is still there, or a full run is required.

    Raises:
        ConfigurationError: the outbox is a backfill's, which no other run sends again. It is abandoned.
    """
    approved = approved_topics(storage, manifest)
    if approved is None or approved.cluster != target.cluster():
        return
    now = target.topic_ids(approved.ids)
    lost = _lost(approved.ids, now)
    if not lost:
        return
    if manifest.mode == "backfill":
        raise _abandoned(storage, manifest, lost)
    _require_again(storage, manifest.publication, lost, report)
    known = _known_on(storage, manifest.publication, target)
    _write(storage, manifest.publication, target, {**_without(known, lost), **_seen(now)})


def _adopt(storage: Storage, publication: Publication, target: Target, report: Report) -> None:
    """Records the topics of a state of which nothing is recorded yet, as they are now."""
    pointer = State(storage, publication.name).pointer()
    if pointer.outbox is None or pointer.cluster != target.cluster():
        return
    held = _held(storage, publication.name, None)
    now = target.topic_ids(held)
    if not publication.source.has_log:
        # A registry's first run puts into state what it never sent, so that its topics need not exist.
        _require_again(storage, publication.name, held - set(now), report)
    _write(storage, publication.name, target, _seen(now))


def _lost(recorded: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    """The topics that are missing or other ones; of one that may not be seen nothing is known."""
    return {name for name, topic_id in recorded.items() if now.get(name) not in {topic_id, HIDDEN}}


def _seen(ids: Mapping[str, str]) -> dict[str, str]:
    return {name: topic_id for name, topic_id in ids.items() if topic_id != HIDDEN}


def _without(known: KnownTopics | None, lost: set[str]) -> dict[str, str]:
    return {name: topic_id for name, topic_id in (known.ids if known else {}).items() if name not in lost}


def _require_again(storage: Storage, publication: str, lost: Iterable[str], report: Report) -> None:
    names = sorted(lost)
    if not names:
        return
    found = require_topics_again(storage, publication, names, datetime.now(UTC))
    report(f"warning: {found.sentence}, and held what was sent: a full run sends everything to them again")


def _held(storage: Storage, publication: str, among: set[str] | None) -> set[str]:
    """The topics that state says hold something, of all or of these; a removed topic that held nothing is no loss."""
    if among is not None and not among:
        return set()
    state = State(storage, publication)
    return held_topics(state.reader(state.pointer()).pieces(_HELD), among)


def _abandoned(storage: Storage, manifest: Manifest, lost: set[str]) -> ConfigurationError:
    found = lost_topics(lost, datetime.now(UTC)).sentence
    Outboxes(storage, manifest.publication).move(manifest.outbox, "abandoned", reason=found)
    return ConfigurationError(
        f"{found}, while the backfill {manifest.outbox} was sent to it: it is not complete there, and abandoned",
        next_step="start the backfill of this interval again",
        publication=manifest.publication,
        outbox=manifest.outbox,
    )


def _known_on(storage: Storage, publication: str, target: Target) -> KnownTopics | None:
    """What is known of the topics on this cluster: another one has topics of its own."""
    known = known_topics(storage, publication)
    return known if known is not None and known.cluster == target.cluster() else None


def _write(storage: Storage, publication: str, target: Target, ids: dict[str, str]) -> None:
    write_known_topics(storage, publication, KnownTopics(cluster=target.cluster(), ids=ids))
