"""Where structures go while the registry changes.

A route may select the latest version alone, so that a version that comes or goes moves others. It moves only versions
of the same artefact: nothing else is asked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from contexture.sdmx.routing import Routing


class Routes(Protocol):
    """What says where structures go: `contexture.sdmx.routing.Router` as a rule."""

    def route(self, urns: Iterable[str], *, held: Iterable[str] | None = None) -> Routing:
        """Where these structures go, `held` being everything that the registry holds."""


class Destinations:
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
