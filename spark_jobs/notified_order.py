"""The order of notifications that were swapped on their way.

A broker sends each notification on a connection of its own, so two that it sends shortly after each other can arrive in
the other order (a real Orion: 1 of 173 pairs of a creation and its deletion). Where both say when their entity was
changed, that decides, and not the arrival.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from contexture.errors import RejectedError
from contexture.events import parse_json
from contexture.sources.ngsi.entity import broker_time, system_time
from contexture.sources.ngsi.notifications import Form, NotifiedEntity
from contexture.sources.ngsi.notifications.parsing import parse_notified

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_UNKNOWN = -(1 << 62)
_TIMES = (b'"dateModified"', b'"modifiedAt"', b'"deletedAt"')


class NotifiedOrder:
    """The notified entities of one claim, as they arrived; 17 bytes of memory for each."""

    def __init__(self) -> None:
        self._identities = array("q")
        self._times = array("q")
        self._deletes = array("b")

    def add(self, entity: NotifiedEntity, form: Form) -> None:
        """Adds the entity that arrived next."""
        key = f"{entity.service_path}\0{entity.id}\0{entity.type}".encode()
        self._identities.append(int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big", signed=True))
        time = change_time(entity, form)
        self._times.append(_UNKNOWN if time is None else (time - _EPOCH) // _MICROSECOND)
        self._deletes.append(entity.operation == "delete")

    def add_unreadable(self) -> None:
        """Adds what arrived next and is no notification: it keeps its place."""
        self._identities.append(0)
        self._times.append(_UNKNOWN)
        self._deletes.append(0)

    def moves(self) -> dict[int, int]:
        """Returns the new place of each entity that has to move, by its place of arrival, both counted from 0.

        Only places of one entity are exchanged. An entity without a time keeps its place, and nothing moves past it.
        """
        if not self._times:
            return {}
        identities = np.frombuffer(self._identities, dtype=np.int64)
        times = np.frombuffer(self._times, dtype=np.int64)[by_identity := np.argsort(identities, kind="stable")]
        deletes = np.frombuffer(self._deletes, dtype=np.int8)[by_identity]
        follows = (np.diff(identities[by_identity]) == 0) & (times[1:] != _UNKNOWN) & (times[:-1] != _UNKNOWN)
        late = (times[:-1] > times[1:]) | ((times[:-1] == times[1:]) & (deletes[:-1] > deletes[1:]))
        moved: dict[int, int] = {}
        for start, end in _stretches(follows, np.flatnonzero(follows & late)):
            places = by_identity[start:end]
            order = _ordered(times[start:end].tolist(), deletes[start:end].tolist())
            moved.update(
                (int(places[old]), int(places[new])) for new, old in enumerate(order) if places[old] != places[new]
            )
        return moved


def change_time(entity: NotifiedEntity, form: Form) -> datetime | None:
    """When the broker changed the entity, UTC; None where the notification does not say it for certain.

    NGSIv2: the builtin `dateModified`; of a deletion that is the time of its last state. NGSI-LD: `modifiedAt`, or
    `deletedAt` of a deletion.
    """
    if not any(name in entity.body for name in _TIMES):
        return None
    try:
        if form == "ngsi-ld" and entity.operation == "delete":
            document = parse_json(entity.body)
            return broker_time(system_time(document.get("deletedAt"))) if isinstance(document, dict) else None
        return parse_notified(entity.body, form, "", entity.service_path).modified_at
    except (RejectedError, ValueError, TypeError):
        return None


def _stretches(follows: np.ndarray, late: np.ndarray) -> Iterator[tuple[int, int]]:
    """The stretches of places, each of one entity and with times throughout, that have one that is late."""
    breaks = np.flatnonzero(~follows)
    bounds = [0, *(breaks + 1).tolist(), len(follows) + 1]
    for number in np.unique(np.searchsorted(breaks, late)).tolist():
        yield bounds[number], bounds[number + 1]


def _ordered(times: Sequence[int], deletes: Sequence[int]) -> list[int]:
    """The places of a stretch by time; of one and the same time as they arrived.

    But a deletion has the time of the last state, so one that arrived before anything else of its time follows it.
    """
    order: list[int] = []
    by_time = sorted(range(len(times)), key=times.__getitem__)
    first = 0
    while first < len(by_time):
        last = first
        while last < len(by_time) and times[by_time[last]] == times[by_time[first]]:
            last += 1
        group = by_time[first:last]
        leading = next((number for number, place in enumerate(group) if not deletes[place]), 0)
        order += group[leading:] + group[:leading]
        first = last
    return order
