"""The temporal representation of an NGSI-LD entity (clause 4.5.7), and the entity as it was after each of its changes.

There, an attribute is the list of its instances, each with the time of its change. Told again are whole entities, or
only what changed, as the publication's data model wants it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter

import orjson

from contexture.events import parse_json
from contexture.ngsi.entity import EntityError, broker_time
from contexture.ngsi.linked_data.attributes import instances, is_plain, is_removed
from contexture.ngsi.linked_data.entity import system_time
from contexture.ngsi.linked_data.temporal_questions import Stretch

_HEAD = frozenset(("id", "type", "@context"))
_PLAIN = frozenset(("createdAt", "modifiedAt", "deletedAt", "expiresAt"))
_SCOPE = "scope"

AttributeKey = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Instance:
    """What an attribute was from a time on; content None: it was removed."""

    key: AttributeKey
    at: datetime
    content: object


@dataclass(frozen=True, slots=True)
class Evolution:
    """The instances of one entity that an answer holds, in the order of their times.

    Attributes:
        id: whose they are.
        head: what doesn't change: id, type, and the @context where the broker sends it along.
    """

    id: str
    head: Mapping[str, object]
    instances: tuple[Instance, ...]

    def within(self, stretch: Stretch) -> Evolution:
        """Only what happened in a stretch."""
        return Evolution(self.id, self.head, tuple(one for one in self.instances if one.at in stretch))

    def until(self, time: datetime) -> Evolution:
        """Only what happened before a time."""
        return Evolution(self.id, self.head, tuple(one for one in self.instances if one.at < time))


def parse_evolution(body: bytes) -> Evolution:
    """Reads one entity of a temporal answer; number literals stay as they are.

    Raises:
        EntityError: it is no entity, or an instance has no time.
    """
    document = _document(body)
    name = document.get("id")
    if not isinstance(name, str):
        raise _unreadable("an entity of the history has no id")
    found = (one for member, value in document.items() for one in _instances(member, value))
    head = {member: value for member, value in document.items() if member in _HEAD}
    return Evolution(name, head, tuple(sorted(found, key=attrgetter("at"))))


def told(evolution: Evolution, before: Evolution | None, *, whole: bool) -> Iterator[tuple[datetime, bytes]]:
    """The entity after each of its changes, in NGSI-LD's normalized form, with the time.

    Args:
        evolution: its changes.
        before: what was known of it before them.
        whole: everything that was known then; else only what changed, and nothing where something was only removed.
    """
    held = _applied({}, before.instances) if before is not None else {}
    for at, group in groupby(evolution.instances, key=attrgetter("at")):
        changed = tuple(group)
        held = _applied(held if whole else {}, changed)
        if whole or held:
            times = {"modifiedAt": at.isoformat().replace("+00:00", "Z")}
            yield at, orjson.dumps({**evolution.head, **times, **_members(held)})


def _applied(held: Mapping[AttributeKey, object], changed: Iterable[Instance]) -> dict[AttributeKey, object]:
    now = dict(held)
    for one in changed:
        if one.content is None:
            now.pop(one.key, None)
        else:
            now[one.key] = one.content
    return now


def _members(held: Mapping[AttributeKey, object]) -> dict[str, object]:
    """Attributes as an entity has them: those with several instances as a list, the scope as it is."""
    found: dict[str, list[object]] = {}
    for (name, _), content in held.items():
        found.setdefault(name, []).append(content)
    return {name: contents[0] if len(contents) == 1 else contents for name, contents in found.items()}


def _instances(name: str, value: object) -> Iterator[Instance]:
    if (
        name in _HEAD
        or (name in _PLAIN and is_plain(value))
        or value == []
        or (name == _SCOPE and not _is_dated(value))
    ):
        return
    for dataset_id, one in instances(name, value):
        if not isinstance(one, dict):
            raise _unreadable(f"the history of the attribute {name!a} holds no instances")
        at = _time(one, "modifiedAt") or _time(one, "deletedAt") or _time(one, "createdAt")
        if at is None:
            raise _unreadable(f"an instance of the attribute {name!a} has no time")
        content = one.get("value") if name == _SCOPE else one
        yield Instance((name, dataset_id), at, None if is_removed(one) else content)


def _is_dated(value: object) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict)


def _time(instance: Mapping[str, object], member: str) -> datetime | None:
    return broker_time(system_time(instance.get(member)))


def _document(body: bytes) -> dict[str, object]:
    try:
        value = parse_json(body)
    except (ValueError, TypeError, RecursionError):
        # `from None`: a decoder's words may quote the data.
        raise _unreadable("an entity of the history is no JSON that can be read") from None
    if not isinstance(value, dict):
        raise _unreadable("an entity of the history is no JSON object")
    return value


def _unreadable(message: str) -> EntityError:
    return EntityError(message[:200], next_step="look at the broker's answer to this query", rule="body")
