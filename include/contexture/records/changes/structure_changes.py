"""The values of a plan of structures: events, records, transactions, and where structures go as versions change.

A route may select the latest version alone, so that a new or deleted version changes the routes of others. It changes
only those of versions of the same artefact, so that no other structure is routed again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from contexture.records.topics.structure_routes import Routing

Operation = Literal["upsert", "delete", "present", "inexpressible", "refused"]

NO_CONTENT = bytes(32)
"""The content hash of a structure that the registry holds and the target never had: the form can't express it."""


@dataclass(frozen=True, slots=True)
class StructureEvent:
    """One row of a landing, after the row rules.

    Attributes:
        event: its number; rising.
        operation: `upsert`: its content is good; `refused`: a rule refused it; `inexpressible`: the registry holds it
            and can't write it in the requested form; `present`: the registry holds it; `delete`: the registry reports
            that it is deleted.
        urn: of the structure; None where it is unknown, which only a refused event may have.
        transaction: the registry's number of its transaction; None where the registry has none.
        at: when that was, if the registry reports it.
        content_hash: of what is upserted.
        references: URNs of the structures that it refers to.
        is_final: whether its content states that it is final; None where that is unknown.
    """

    event: int
    operation: Operation
    urn: str | None
    transaction: int | None = None
    at: datetime | None = None
    content_hash: bytes = b""
    references: tuple[str, ...] = ()
    is_final: bool | None = None


@dataclass(frozen=True, slots=True)
class HeldStructure:
    """The content of one structure that the target holds.

    Attributes:
        content_hash: of the content that was sent last.
        topics: where it went; none where no route selects it.
        withheld: the registry has other content, which was refused or can't be expressed.
        at: when the registry made this content, if it reported that.
        sequence: of the outbox that sent it last.
        references: URNs of the structures that this content refers to, if they were ever read.
        is_final: whether this content states that it is final; None where that is unknown.
    """

    content_hash: bytes
    topics: tuple[str, ...]
    withheld: bool = False
    at: datetime | None = None
    sequence: int = 0
    references: tuple[str, ...] = ()
    is_final: bool | None = None


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """One record: a structure for one topic.

    Attributes:
        urn: its key.
        topic: where it goes.
        event: the event whose body is its value; None for a tombstone.
        gone: what a tombstone deletes; None for a value, and where that is unknown.
    """

    urn: str
    topic: str
    event: int | None
    gone: HeldStructure | None = None


@dataclass(frozen=True, slots=True)
class PlannedTransaction:
    """Records that become visible together: values, or tombstones, never both.

    Attributes:
        id: the registry's number of the transaction that they show; None where it has none.
        deletions: whether they are tombstones.
        at: when the registry made the transaction, if it reports that.
        records: in sending order; at least one.
    """

    id: int | None
    deletions: bool
    at: datetime | None
    records: tuple[PlannedRecord, ...]


@dataclass(frozen=True, slots=True)
class RefusedStructure:
    """An event that planning refuses; its identity keeps what the target has of it."""

    event: int
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class LogPosition:
    """One transaction of the registry, or one snapshot of it.

    Attributes:
        id: the registry's number; None where it has none.
        events: in order.
        absent: structures that a snapshot no longer has.
    """

    id: int | None
    events: tuple[StructureEvent, ...]
    absent: tuple[str, ...] = ()

    @property
    def at(self) -> datetime | None:
        """When the registry made the transaction, if it reports that."""
        times = (event.at for event in self.events if event.transaction is not None and event.at is not None)
        return max(times, default=None)


@dataclass(frozen=True, slots=True)
class PublishMode:
    """How transactions are sent.

    Attributes:
        sequence: of the outbox that sends them.
        everything: content that the target has already is sent again.
        sends: False: what the registry holds becomes state, and nothing is sent.
        deletes: whether there are tombstones.
    """

    sequence: int
    everything: bool = False
    sends: bool = True
    deletes: bool = True


class Routes(Protocol):
    """Routes structures to topics, as `contexture.records.topics.structure_routes.Router` does."""

    def route(self, urns: Iterable[str], *, held: Iterable[str] | None = None) -> Routing:
        """Returns where these structures go, `held` being everything that the registry holds."""


class RouteChanges:
    """The routes of the structures that a registry holds, as its versions change.

    Args:
        routes: of the publication.
        held: what the registry holds in the beginning.
    """

    def __init__(self, routes: Routes, held: Iterable[str]) -> None:
        self._routes = routes
        self._versions: dict[str, set[str]] = {}
        self.change(held, ())

    def change(self, added: Iterable[str], deleted: Iterable[str]) -> None:
        """Changes what the registry holds."""
        for urn in added:
            self._versions.setdefault(artefact_of(urn), set()).add(urn)
        for urn in deleted:
            self._versions.get(artefact_of(urn), set()).discard(urn)

    def routes_of_versions(self, urns: Iterable[str]) -> Routing:
        """Returns where all held versions of the artefacts of these structures go."""
        artefacts = sorted({artefact_of(urn) for urn in urns})
        held = [urn for artefact in artefacts for urn in sorted(self._versions.get(artefact, ()))]
        return self._routes.route(held, held=held)

    def routes_of_deleted(self, urn: str) -> tuple[str, ...]:
        """Returns where a deleted structure went, if it was the latest of its versions."""
        return self._routes.route([urn], held=[urn]).topics.get(urn, ())


def artefact_of(urn: str) -> str:
    """Returns the URN of a maintainable structure without its version, which all its versions share."""
    return urn.rpartition("(")[0] or urn


def newly_routed(routes: Routes, before: Collection[str], after: Collection[str]) -> tuple[str, ...]:
    """Returns the structures that a change of others routes to further topics: they are sent although unchanged.

    Args:
        routes: of the publication.
        before, after: what the registry holds before and after a transaction.
    """
    was_there, is_there = frozenset(before), frozenset(after)
    changed = {artefact_of(urn) for urn in was_there ^ is_there}
    concerned = ([urn for urn in sorted(urns) if artefact_of(urn) in changed] for urns in (was_there, is_there))
    was, now = (routes.route(held, held=held).topics for held in concerned)
    return tuple(urn for urn, topics in now.items() if urn in was_there and {*topics} - {*was.get(urn, ())})
