"""Where a replay's records go when it has a prefix for its topics: never into a topic that live runs fill."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.storage.state import State
from contexture.storage.storage import Storage
from contexture.topics.collisions import as_brokers_compare
from contexture.topics.legality import TopicNameError, check_legal

_OWN_TOPICS: Final = "contexture.ledger."


def check_topics(storage: Storage, publication: str, prefix: str, topics: Iterable[str]) -> None:
    """Sees that the topics of a replay can be made and are filled by no live runs.

    Args:
        storage: where the state of publications is.
        publication: whose replay it is.
        prefix: what its topics begin with.
        topics: with the prefix.

    Raises:
        ConfigurationError: a name is too long, a ledger's, or that of a topic which live runs of some
            publication in the storage fill.
    """
    live: dict[str, str] | None = None
    for topic in topics:
        try:
            check_legal(topic)
        except TopicNameError as error:
            raise _unusable(prefix, f"{error.message}") from error
        if topic.startswith(_OWN_TOPICS):
            raise _unusable(prefix, f"{topic} is the name of a ledger")
        live = _live(storage, publication) if live is None else live
        owner = live.get(as_brokers_compare(topic))
        if owner is not None:
            raise _unusable(prefix, f"live runs of {owner} fill {topic}")


def _live(storage: Storage, publication: str) -> dict[str, str]:
    """Whose each topic is; the publication itself where it shares one with others."""
    others = [name for name in storage.folders("") if name != publication]
    return {as_brokers_compare(topic): name for name in (*others, publication) for topic in _filled(storage, name)}


def _filled(storage: Storage, publication: str) -> list[str]:
    state = State(storage, publication)
    pointer = state.pointer()
    if not pointer.files:
        return []
    return list(pc.unique(pc.list_flatten(state.table(pointer, ["topics"]).column("topics"))).to_pylist())


def _unusable(prefix: str, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"a replay can't go to topics that begin with {prefix!r}: {reason}", next_step="choose another topic_prefix"
    )
