"""What a replica holds last of each key, so that a replay does not put an old value on top of it."""

from __future__ import annotations

from sys import intern

from contexture.storage.orders import StageOrder
from contexture.storage.state import State
from contexture.storage.storage import Storage

Newest = dict[tuple[str, bytes | None], int]
"""The sequence of the outbox that last sent a value of a key to a topic; without keys whose last record is a tombstone.

A key alone would not do: with `key: id`, say, all attributes of an entity have one key, each in a topic of its own.
"""


def newest_sent(storage: Storage, order: StageOrder) -> Newest | None:
    """What a publication's topics hold last, where they are replicas; None where nothing is left out for it."""
    if order.publication.topics.keep != "latest" or order.replay.sends_outdated:
        return None
    state = State(storage, order.publication.name)
    newest: Newest = {}
    for piece in state.reader(state.pointer()).pieces(["topics", "key", "sequence"]):
        columns = (piece.column(name).to_pylist() for name in ("topics", "key", "sequence"))
        for topics, key, sequence in zip(*columns, strict=True):
            newest |= {(intern(topic), key): sequence for topic in topics}
    return newest
