"""What a backfill sends: the archive of its interval, or the source's own history of that time."""

from __future__ import annotations

import sys
from collections.abc import Callable

from contexture.errors import ConfigurationError
from contexture.sources.http.errors import NotOfferedError
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageOrder
from contexture.storage.replay import NoLogError, NothingArchivedError, find_archived_outboxes, replay
from spark_jobs.shared.context import store_of


def backfill(order: StageOrder, of_history: Callable[[], Manifest]) -> Manifest:
    """The outbox of a backfill; `of_history` makes it of what the source keeps.

    Raises:
        ConfigurationError: nothing is archived, or not all of it, and the source keeps no history.
        ContextureError: whatever making it of the history meets.
    """
    wanted, keeps_history = order.replay.replay_from, order.publication.source.keeps_history
    if wanted == "source" and not keeps_history:
        raise ConfigurationError(
            f"{_source(order)} keeps nothing of past times, so an interval can't be sent again from it",
            next_step="backfill with replay_from: archive",
            publication=order.publication.name,
        )
    if wanted == "archive" or not keeps_history:
        return replay(store_of(order), order, _told)
    if wanted == "source":
        return of_history()
    if find_archived_outboxes(store_of(order), order).is_complete:
        _told("the archive holds the whole interval: it is sent again as it was sent then")
        return replay(store_of(order), order, _told)
    return _of_history_or_archive(order, of_history)


def _of_history_or_archive(order: StageOrder, of_history: Callable[[], Manifest]) -> Manifest:
    try:
        made = of_history()
    except (NotOfferedError, NoLogError) as error:
        none = error
    else:
        _told("the archive doesn't hold the whole interval: it is sent again from what the source keeps")
        return made
    try:
        return replay(store_of(order), order, _told)
    except NothingArchivedError as nothing:
        raise ConfigurationError(
            f"{nothing.message}, and {none.message}",
            next_step=f"{nothing.next_step}; or {none.next_step}",
            publication=order.publication.name,
        ) from nothing


def _source(order: StageOrder) -> str:
    return order.publication.source.title


def _told(sentence: str) -> None:
    # The stage job's answer is the last line of its standard output.
    sys.stderr.write(f"{sentence}\n")
