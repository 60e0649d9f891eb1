"""What state knows of the keys of topics: whose they are, and which were published since."""

from __future__ import annotations

from collections.abc import Iterator

from contexture.operations.verification.contents import place_of
from contexture.operations.verification.source_view import SourceView
from contexture.storage.home import Storage
from contexture.storage.state import State, StatePointer

KnownKey = tuple[str, bytes | None, bytes, bytes | None, bool]
"""Topic, key, identity key, the entity's identity key, and whether the last run has found it absent."""


def known_keys(storage: Storage, publication: str, pointer: StatePointer, view: SourceView) -> Iterator[KnownKey]:
    """Gives every key of a generation of state.

    Raises:
        RetriableError: its files are no longer there, because runs have moved on.
    """
    columns = ["identity", "topics", "key", "missing_since"]
    for piece in State(storage, publication).reader(pointer).pieces(columns):
        for name, topics, key, since in zip(*(piece.column(each).to_pylist() for each in columns), strict=True):
            entity = view.entity_of(name)
            yield from ((topic, key, name, entity, since is not None) for topic in topics)


def published_since(storage: Storage, publication: str, before: StatePointer, now: StatePointer) -> Iterator[bytes]:
    """Gives what stands for the keys that runs have published between two generations; errors as `known_keys`."""
    if now.generation == before.generation:
        return
    columns = ["topics", "key", "sequence"]
    for piece in State(storage, publication).reader(now).pieces(columns):
        for topics, key, sequence in zip(*(piece.column(each).to_pylist() for each in columns), strict=True):
            if sequence > before.sequence:
                yield from (place_of(topic, key) for topic in topics)
