"""`GET /ngsi-ld/v1/temporal/entities`: how entities changed, as brokers show it that keep a history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from contexture_sandbox.context_broker.linked_data.documents import HEAD, Document, Documents
from contexture_sandbox.context_broker.linked_data.flavours import Flavour
from contexture_sandbox.context_broker.linked_data.pages import Window, refuse_too_broad, window
from contexture_sandbox.context_broker.linked_data.problems import bad_request
from contexture_sandbox.context_broker.linked_data.selecting import conditions
from contexture_sandbox.context_broker.times import parse_time, shown

Instances = list[tuple[int, dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Asked:
    """The temporal query (clause 4.11): times between both, excluding them, and at most the last so many of each."""

    after_us: int | None
    before_us: int | None
    last: int | None

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Asked:
        """What the parameters ask.

        Raises:
            Problem: 400, they are no temporal query, or one by other times than `modifiedAt`.
        """
        relation, time = parameters.get("timerel"), _time(parameters, "timeAt")
        if parameters.get("timeproperty") != "modifiedAt":
            raise bad_request("Unsupported timeproperty", "only modifiedAt is kept here")
        last = int(parameters["lastN"]) if parameters.get("lastN") else None
        if relation == "between":
            return cls(time, _time(parameters, "endTimeAt"), last)
        if relation in {"before", "after"}:
            return cls(None, time, last) if relation == "before" else cls(time, None, last)
        raise bad_request("Invalid timerel", "before, after or between")

    def selects(self, time_us: int) -> bool:
        """Whether a time is asked for."""
        after = self.after_us is None or time_us > self.after_us
        return after and (self.before_us is None or time_us < self.before_us)


@dataclass(frozen=True, slots=True)
class Part:
    """What is answered: 200, or 206 and the headers that say which part it is."""

    bodies: list[dict[str, object]]
    headers: dict[str, str]
    status: int


@dataclass(frozen=True, slots=True)
class Evolution:
    """One entity's instances by attribute, in the order of time."""

    document: Document
    attributes: Mapping[str, Instances]

    @classmethod
    def of(cls, versions: Iterable[Document], asked: Asked) -> Evolution | None:
        """What of an entity's versions is asked for; None where nothing is."""
        found: dict[str, Instances] = {}
        last: Document | None = None
        for last, name, value in _changes(versions):
            if asked.selects(last.modified_us):
                found.setdefault(name, []).extend((last.modified_us, one) for one in _instances(value, last))
        if last is None or not found:
            return None
        return cls(last, {name: many[-asked.last :] if asked.last else many for name, many in found.items()})

    def times(self) -> Iterator[int]:
        """The times of all instances."""
        return (time for many in self.attributes.values() for time, _ in many)

    def reach(self, most: int) -> int | None:
        """Returns the time up to which a response with at most `most` instances of an attribute is complete.

        None: it contains all instances.
        """
        ends = [many[most - 1][0] for many in self.attributes.values() if len(many) > most]
        return min(ends) if ends else None

    def body(self, reach: int | None) -> dict[str, object]:
        """Returns the entity of a response, with its instances up to a time."""
        head = {name: value for name, value in self.document.content.items() if name in {"id", "type"}}
        listed = {
            name: [one for time, one in many if reach is None or time <= reach]
            for name, many in self.attributes.items()
        }
        return {**head, **{name: many for name, many in listed.items() if many}}


def partly(page: list[Evolution], asked: Asked, most: int) -> Part:
    """A page, in part where an attribute has more than so many instances (clause 6.3.10).

    With `lastN` it is always said to be one: brokers differ there, and a reader has to bear that.
    """
    reaches = [reach for one in page if (reach := one.reach(most)) is not None]
    reach = min(reaches, default=None)
    times = [time for one in page for time in one.times() if reach is None or time <= reach]
    bodies = [one.body(reach) for one in page]
    if not times or (reach is None and asked.last is None):
        return Part(bodies, {}, 200)
    if asked.last is not None:
        return Part(bodies, _content_range(asked.before_us or max(times), min(times), str(asked.last)), 206)
    return Part(bodies, _content_range(asked.after_us or min(times), max(times), "*"), 206)


def _content_range(first_us: int, last_us: int, size: str) -> dict[str, str]:
    return {"content-range": f"date-time {shown(first_us)}-{shown(last_us)}/{size}"}


def _changes(versions: Iterable[Document]) -> Iterator[tuple[Document, str, object]]:
    for before, now in pairwise([None, *versions]):
        assert now is not None
        old = before.content if before else {}
        for name, value in now.content.items():
            if name not in HEAD and old.get(name) != value:
                yield now, name, value


def _instances(value: Any, document: Document) -> Iterator[dict[str, object]]:
    for one in value if isinstance(value, list) else [value]:
        times = {"createdAt": shown(document.created_us), "modifiedAt": shown(document.modified_us)}
        yield {**one, **times, "instanceId": f"urn:ngsi-ld:instance:{document.modified_us}"}


def _time(parameters: Mapping[str, str], name: str) -> int:
    time = parse_time(parameters.get(name, ""))
    if time is None:
        raise bad_request("Invalid time", f"{name} is needed")
    return time


_MINTAKAS = 100


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """The page that is asked for.

    Attributes:
        window: by places.
        anchor: the id that the page begins with, of a broker that pages so; None of others.
    """

    window: Window
    anchor: str | None

    @classmethod
    def of(cls, parameters: Mapping[str, str], flavour: Flavour) -> HistoryPage:
        """What the parameters ask; where anchors are, `limit` and `offset` mean nothing.

        Raises:
            Problem: a number is none, or the page is larger than the broker gives.
        """
        if flavour.version is None:
            return cls(window(parameters, flavour), None)
        size = int(parameters.get("pageSize", _MINTAKAS))
        return cls(Window(size, 0, "count" in parameters.get("options", "")), parameters.get("pageAnchor", ""))

    def cut(self, found: list[Evolution]) -> list[Evolution]:
        """The entities of the page, of those in the order of their ids."""
        if self.anchor is not None:
            return [one for one in found if one.document.id >= self.anchor][: self.window.limit]
        return found[self.window.offset : self.window.offset + self.window.limit]

    def headers(self, found: list[Evolution]) -> dict[str, str]:
        """How many there are, where that was asked, and where the next page begins."""
        count = {"ngsild-results-count": str(len(found))} if self.window.count else {}
        if self.anchor is None:
            return count
        rest = [one.document.id for one in found if one.document.id >= self.anchor][self.window.limit :]
        return count | {"page-size": str(self.window.limit)} | ({"next-page": rest[0]} if rest else {})


def history(parameters: Mapping[str, str], documents: Documents, flavour: Flavour) -> Part:
    """How the selected entities changed, also those that were deleted since; entities in the order of their ids.

    Raises:
        Problem: 400, or what the broker says to a page that is too large.
    """
    refuse_too_broad(parameters, flavour)
    asked, paged, tests = Asked.of(parameters), HistoryPage.of(parameters, flavour), conditions(parameters)
    known = (held for _, held in sorted(documents.history.items()) if all(test(held[-1]) for test in tests))
    found = [one for versions in known if (one := Evolution.of(versions, asked)) is not None]
    part = partly(paged.cut(found), asked, flavour.history_instances)
    return Part(part.bodies, part.headers | paged.headers(found), part.status)
