"""What a registry's changes require: which records, in which transactions, and the state that Kafka has after them.

A route may select the latest version alone, so that a version that comes or goes moves others. It moves only versions
of the same artefact: nothing else is asked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from contexture.records.topics.structure_routes import Routing

Operation = Literal["upsert", "delete", "present", "inexpressible", "refused"]

NO_CONTENT = bytes(32)
"""The content hash of a structure that the registry holds and the target never had: its form can't express it."""


@dataclass(frozen=True, slots=True)
class StructureEvent:
    """One row of a landing, judged.

    Attributes:
        event: its number; rising.
        operation: `upsert`: its content is good; `refused`: a rule refused it; `inexpressible`: the registry holds it
            and can't write it in the form that was asked for; `present`: the registry holds it; `delete`: the registry
            says that it is gone.
        urn: of the structure; None where no one knows which it is, which only one that is refused may lack.
        transaction: the registry's number of the transaction that did it; None where the registry gives none.
        at: when that was, if the registry says so.
        content_hash: of what is upserted.
        references: URNs of the structures that it refers to.
        is_final: whether its content says that it is final; None where no one knows.
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
    """What the target holds of one structure.

    Attributes:
        content_hash: of the content that was sent last.
        topics: where it went; none where no route selects it.
        withheld: the registry has other content, which was refused or can't be expressed.
        at: when the registry made this content, if it said so.
        sequence: of the outbox that sent it last.
        references: URNs of the structures that this content refers to, as far as that was ever read.
        is_final: whether this content says that it is final; None where no one knows.
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
        gone: what a tombstone takes away; None for a value, and where no one knows.
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
        at: when the registry made the transaction, if it says so.
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
        id: the registry's number; None where it gives none.
        events: in order.
        absent: structures that a snapshot has shown to be gone.
    """

    id: int | None
    events: tuple[StructureEvent, ...]
    absent: tuple[str, ...] = ()

    @property
    def at(self) -> datetime | None:
        """When the registry made the transaction, if it says so."""
        told = (event.at for event in self.events if event.transaction is not None and event.at is not None)
        return max(told, default=None)


@dataclass(frozen=True, slots=True)
class PublishMode:
    """How transactions are told.

    Attributes:
        sequence: of the outbox that tells them.
        everything: what the target has already is sent again.
        sends: False: what the registry holds becomes state, and nothing is sent.
        deletes: whether there are tombstones.
    """

    sequence: int
    everything: bool = False
    sends: bool = True
    deletes: bool = True


class Routes(Protocol):
    """What says where structures go: `contexture.records.topics.structure_routes.Router` as a rule."""

    def route(self, urns: Iterable[str], *, held: Iterable[str] | None = None) -> Routing:
        """Where these structures go, `held` being everything that the registry holds."""


class RouteChanges:
    """Where the structures that a registry holds go, as that changes.

    Args:
        routes: say where.
        there: what the registry holds in the beginning.
    """

    def __init__(self, routes: Routes, there: Iterable[str]) -> None:
        self._routes = routes
        self._versions: dict[str, set[str]] = {}
        self.change(there, ())

    def change(self, come: Iterable[str], gone: Iterable[str]) -> None:
        """The registry holds these, and no longer those."""
        for urn in come:
            self._versions.setdefault(artefact_of(urn), set()).add(urn)
        for urn in gone:
            self._versions.get(artefact_of(urn), set()).discard(urn)

    def around(self, urns: Iterable[str]) -> Routing:
        """Where all versions that there are of the artefacts of these structures go."""
        artefacts = sorted({artefact_of(urn) for urn in urns})
        held = [urn for artefact in artefacts for urn in sorted(self._versions.get(artefact, ()))]
        return self._routes.route(held, held=held)

    def of_gone(self, urn: str) -> tuple[str, ...]:
        """Where a structure went that is gone, if it was the latest of its versions."""
        return self._routes.route([urn], held=[urn]).topics.get(urn, ())


def artefact_of(urn: str) -> str:
    """The URN of a maintainable structure without its version: all its versions share it."""
    return urn.rpartition("(")[0] or urn


def newly_routed(routes: Routes, before: Collection[str], after: Collection[str]) -> tuple[str, ...]:
    """The structures that a change of others brings to further topics: they have to be sent although they are the same.

    Args:
        routes: say where structures go.
        before, after: what the registry holds before and after a transaction.
    """
    was_there, is_there = frozenset(before), frozenset(after)
    changed = {artefact_of(urn) for urn in was_there ^ is_there}
    concerned = ([urn for urn in sorted(urns) if artefact_of(urn) in changed] for urns in (was_there, is_there))
    was, now = (routes.route(held, held=held).topics for held in concerned)
    return tuple(urn for urn, topics in now.items() if urn in was_there and {*topics} - {*was.get(urn, ())})
