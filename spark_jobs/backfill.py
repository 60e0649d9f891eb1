"""The outbox of a backfill, made from the archive of its interval or from the source's history of that time."""

from __future__ import annotations

import sys
from collections.abc import Callable

from contexture.errors import ConfigurationError
from contexture.sources.http.errors import NotOfferedError
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.replay import NoLogError, NothingArchivedError, find_archived_outboxes, replay
from spark_jobs.shared.context import store_of


def backfill(order: StageOrder, prepare_history: Callable[[], Manifest]) -> Manifest:
    """Makes the outbox of a backfill.

    Args:
        order: the interval, and from where it is sent again.
        prepare_history: makes the outbox from the history that the source keeps.

    Raises:
        ConfigurationError: nothing is archived, or not all of it, and the source keeps no history.
        ContextureError: as `prepare_history` raises it.
    """
    wanted, keeps_history = order.replay.replay_from, order.publication.source.keeps_history
    if wanted == "source" and not keeps_history:
        raise ConfigurationError(
            f"{_source(order)} stores no history, so that an interval cannot be sent again from it",
            next_step="backfill with replay_from: archive",
            publication=order.publication.name,
        )
    if wanted == "archive" or not keeps_history:
        return replay(store_of(order), order, _report)
    if wanted == "source":
        return prepare_history()
    if find_archived_outboxes(store_of(order), order).is_complete:
        _report("the archive holds the whole interval: the archived records are sent again")
        return replay(store_of(order), order, _report)
    return _prepare_history_or_replay(order, prepare_history)


def _prepare_history_or_replay(order: StageOrder, prepare_history: Callable[[], Manifest]) -> Manifest:
    try:
        manifest = prepare_history()
    except (NotOfferedError, NoLogError) as error:
        no_history = error
    else:
        _report("the archive does not hold the whole interval: it is sent again from the history of the source")
        return manifest
    try:
        return replay(store_of(order), order, _report)
    except NothingArchivedError as not_archived:
        raise ConfigurationError(
            f"{not_archived.message}, and {no_history.message}",
            next_step=f"{not_archived.next_step}; or {no_history.next_step}",
            publication=order.publication.name,
        ) from not_archived


def _source(order: StageOrder) -> str:
    return order.publication.source.title


def _report(sentence: str) -> None:
    # The result of the stage job is the last line of its standard output.
    sys.stderr.write(f"{sentence}\n")
