"""What a backfill sends: the archive of its interval, or else the history that an NGSI-LD broker keeps of it."""

from __future__ import annotations

from collections.abc import Callable

from contexture.errors import ConfigurationError
from contexture.ngsi.answers import NotOfferedError
from contexture.outbox.manifest import Manifest
from contexture.outbox.orders import StageOrder
from contexture.outbox.replay import NothingArchivedError, replay


def backfill(order: StageOrder, of_history: Callable[[], Manifest]) -> Manifest:
    """The outbox of a backfill; `of_history` makes it of the source's history.

    Raises:
        ConfigurationError: nothing is archived, and the source shows no history.
        ContextureError: whatever making it of the history meets.
    """
    try:
        return replay(order)
    except NothingArchivedError as error:
        if order.publication.source.api != "ngsi-ld":
            raise
        nothing = error
    try:
        return of_history()
    except NotOfferedError as error:
        raise ConfigurationError(
            f"{nothing.message}, and {error.message}",
            next_step=f"{nothing.next_step}; or {error.next_step}",
            publication=order.publication.name,
        ) from error
