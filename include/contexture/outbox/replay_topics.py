"""Where a replay's records go when it has a prefix for its topics: never into a topic that live runs fill."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.outbox.state import State
from contexture.outbox.storage import Storage
from contexture.topics.collisions import as_brokers_compare
from contexture.topics.legality import TopicNameError, check_legal

_OWN_TOPICS: Final = "contexture.ledger."


def check_topics(storage: Storage, publication: str, prefix: str, topics: Iterable[str]) -> None:
    """Sees that the topics of a replay can be made and are nobody's whom this publication knows.

    Args:
        storage: where the publication's state is.
        publication: its name.
        prefix: what its topics begin with.
        topics: with the prefix.

    Raises:
        ConfigurationError: a name is too long, a ledger's, or that of a topic which live runs fill.
    """
    live: frozenset[str] | None = None
    for topic in topics:
        try:
            check_legal(topic)
        except TopicNameError as error:
            raise _unusable(prefix, f"{error.message}") from error
        if topic.startswith(_OWN_TOPICS):
            raise _unusable(prefix, f"{topic} is the name of a ledger")
        live = _live(storage, publication) if live is None else live
        if as_brokers_compare(topic) in live:
            raise _unusable(prefix, f"live runs of {publication} fill {topic} themselves")


def _live(storage: Storage, publication: str) -> frozenset[str]:
    state = State(storage, publication)
    topics = pc.unique(pc.list_flatten(state.table(state.pointer(), ["topics"]).column("topics"))).to_pylist()
    return frozenset(as_brokers_compare(topic) for topic in topics)


def _unusable(prefix: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"a replay can't go to topics that begin with {prefix!r}: {reason}", next_step="choose another topic_prefix"
    )
