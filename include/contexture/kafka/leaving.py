"""The end of a group's member, in a time that is known."""

from __future__ import annotations

import logging
from threading import Thread
from typing import Final, Protocol

from contexture.kafka.clients import asked

LEAVE_SECONDS: Final = 30.0

_LOG: Final = logging.getLogger(__name__)


class Closes(Protocol):
    """What has an end that may wait for brokers."""

    def close(self) -> None:
        """Gives back what is held and waits until that is done."""


def leave(client: Closes, seconds: float = LEAVE_SECONDS) -> bool:
    """Closes a client, but waits for it no longer than so many seconds; gives whether it is closed.

    While partitions move, the client library has been seen never to come back from this call (librdkafka 2.16: some one
    in a hundred), and no signal reaches a thread that waits in there. Nothing is lost by going on: what was done is
    committed by itself, and brokers give the partitions away when they no longer hear that they are read. For the same
    reason an error of the call is told in the log alone.
    """
    # A daemon: Python's own end must not wait for it either.
    closing = Thread(target=_close, args=(client,), name="leaving a group", daemon=True)
    closing.start()
    closing.join(seconds)
    if closing.is_alive():
        _LOG.warning("the Kafka client has not left its group within %.0f s; it is left to itself", seconds)
    return not closing.is_alive()


def _close(client: Closes) -> None:
    try:
        asked(client.close)
    except Exception as problem:
        _LOG.warning("the Kafka client left its group with %s", type(problem).__name__)
