"""Topics that several identities share although each must have its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import orjson

from contexture.events import AttributeName, ContextIdentity, identity_hash, identity_key
from contexture.records.topics.names import TopicNamer, TopicNaming

Integers = npt.NDArray[np.int64]
_CACHED_PARTS = 8192


class IdentityIndex:
    """The numbers of what a publication's topic names represent: events of one number share a topic on purpose.

    Args:
        topics: the publication's `topics`.

    Attributes:
        can_collide: whether one name can represent several identities.
    """

    def __init__(self, topics: TopicNaming) -> None:
        self._namer = TopicNamer(topics)
        self._is_identity = topics.data_model in {"dm-by-entity", "dm-by-attribute"} and not self._namer.rewrites
        # A publication has one service, so that names of services differ only where mappings make them.
        is_one_name = topics.data_model == "dm-by-service" and not self._namer.rewrites
        self.can_collide = topics.naming not in {"fixed", "injective"} and not is_one_name

    def of_event(
        self, identity: ContextIdentity, attribute: AttributeName | None = None, attribute_type: str = ""
    ) -> int | None:
        """Returns the number of an event; None where its name represents its own identity (see `hash_number`)."""
        if not self.can_collide or (self._is_identity and (attribute is None or attribute.dataset_id is None)):
            return None
        if not self._is_identity:
            return _number(self._namer.parts(identity, attribute.name if attribute else None, attribute_type))
        return hash_number(identity_hash(identity_key(identity, AttributeName(attribute.name) if attribute else None)))

    def of_key(self, key: bytes, topics: Sequence[str]) -> int | None:
        """Returns the number of an identity key that a record has; None where the key alone does not show it.

        Args:
            key: as `identity_key` returns it.
            topics: where its records went. Rules that have changed since, or mappings that need an attribute's type,
                would name others now.
        """
        members: list[str] = orjson.loads(key)
        identity, name = ContextIdentity(*members[:4]), members[4] if len(members) > 4 else None
        if self._is_identity:
            return hash_number(identity_hash(identity_key(identity, AttributeName(name) if name is not None else None)))
        if not set(self._namer(identity, name)) <= set(topics):
            return None
        return _number(self._namer.parts(identity, name))


def hash_number(hashed: bytes) -> int:
    """Returns the number of an identity's hash: its first eight bytes."""
    return int.from_bytes(hashed[:8], "big", signed=True)


@lru_cache(_CACHED_PARTS)
def _number(parts: tuple[str, ...]) -> int:
    return hash_number(identity_hash(orjson.dumps(parts)))


def number_values(values: Sequence[Hashable]) -> Integers:
    """Returns a number for each value; equal values have equal numbers."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def metric_name(topic: str) -> str:
    """Returns the topic as Kafka's metrics name it: topics of one metric name cannot both exist."""
    return topic.replace(".", "_")


def find_clashes(topics: Iterable[str]) -> list[tuple[str, ...]]:
    """Returns each group of topics that Kafka takes for one, in the order of the groups' first names."""
    groups: dict[str, list[str]] = {}
    for topic in sorted(set(topics)):
        groups.setdefault(metric_name(topic), []).append(topic)
    return [tuple(names) for names in groups.values() if len(names) > 1]


def mark_collisions(topics: Integers, identities: Integers) -> npt.NDArray[np.bool_]:
    """Returns for each event whether its topic is also that of another identity.

    Args:
        topics: a number for each event's topic; number `metric_name`, so that creatable topics remain.
        identities: a number for what each name is made of (`TopicNamer.parts`).
    """
    if not len(topics):
        return np.zeros(0, dtype=np.bool_)
    order = np.lexsort((identities, topics))
    topic, identity = topics[order], identities[order]
    starts = np.flatnonzero(np.concatenate(([True], topic[1:] != topic[:-1])))
    sizes = np.diff(np.append(starts, len(topic)))
    # Identities are sorted within a topic, so its first and last differ when any two do.
    shared = np.repeat(identity[starts] != identity[starts + sizes - 1], sizes)
    found = np.empty(len(topics), dtype=np.bool_)
    found[order] = shared
    return found
