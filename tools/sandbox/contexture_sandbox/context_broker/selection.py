"""Choosing entities: scope, ids, types, conditions, order, page."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from contexture_sandbox.context_broker.expressions import (
    Predicate,
    Term,
    parse_terms,
    posix_pattern,
    predicate,
    time_bounds,
)
from contexture_sandbox.context_broker.model import StoredEntity
from contexture_sandbox.context_broker.ordering import Order
from contexture_sandbox.context_broker.scope import Scope
from contexture_sandbox.context_broker.store import Tenant


@dataclass(frozen=True, slots=True)
class Selector:
    """Entities by id and type, each a list or a pattern; what is not given does not matter."""

    ids: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    id_pattern: str | None = None
    type_pattern: str | None = None

    def predicates(self) -> list[Predicate]:
        """The conditions an entity of this selector meets."""
        found: list[Predicate] = []
        if self.ids:
            ids = frozenset(self.ids)
            found.append(lambda entity: entity.id in ids)
        if self.types:
            types = frozenset(self.types)
            found.append(lambda entity: entity.type in types)
        if self.id_pattern is not None and self.id_pattern != ".*":
            found.append(_matching(self.id_pattern, lambda entity: entity.id))
        if self.type_pattern is not None and self.type_pattern != ".*":
            found.append(_matching(self.type_pattern, lambda entity: entity.type))
        return found


def selector_of(given: Mapping[str, object]) -> Selector:
    """The selector in URL parameters, where ids and types are lists by comma."""

    def listed(name: str) -> tuple[str, ...]:
        return tuple(str(given[name]).split(",")) if name in given else ()

    return Selector(listed("id"), listed("type"), _pattern(given, "idPattern"), _pattern(given, "typePattern"))


def named_selector(given: Mapping[str, object]) -> Selector:
    """The selector in one entry of a query body, where an id or a type is one name, commas included."""

    def named(name: str) -> tuple[str, ...]:
        return (str(given[name]),) if name in given else ()

    return Selector(named("id"), named("type"), _pattern(given, "idPattern"), _pattern(given, "typePattern"))


def _pattern(given: Mapping[str, object], name: str) -> str | None:
    return str(given[name]) if name in given else None


def _matching(text: str, part: Callable[[StoredEntity], str]) -> Predicate:
    pattern = posix_pattern(text)
    if pattern is None:
        return lambda _entity: False
    return lambda entity: pattern.search(part(entity)) is not None


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that decides which entities are in an answer; any of the selectors suffices."""

    scope: Scope
    selectors: tuple[Selector, ...] = ()
    terms: tuple[Term, ...] = ()
    metadata_terms: tuple[Term, ...] = ()
    order: Order = field(default_factory=Order)
    near: Predicate | None = None

    def select(self, tenant: Tenant, *, limit: int, offset: int, count: bool) -> tuple[list[StoredEntity], int | None]:
        """One page, and the number of all entities selected when `count` asks for it."""
        entities = tenant.ordered(self.order, self.order.sort)
        places, terms = self._places(entities)
        predicates = self._predicates(terms)
        if not predicates:
            page = [entities[place] for place in places[offset : offset + limit]]
            return page, len(places) if count else None
        # Looked at one by one: a copy of what a time condition leaves would cost each page as much as all entities.
        selected = _filtered(map(entities.__getitem__, places), predicates)
        if not count:
            return list(islice(selected, offset, offset + limit)), None
        matching = list(selected)
        return matching[offset : offset + limit], len(matching)

    def _places(self, entities: list[StoredEntity]) -> tuple[range, list[Term]]:
        """The entities of the order that its time conditions leave; and the conditions left."""
        moment = self.order.leading_time
        if moment is None:
            return range(len(entities)), list(self.terms)
        first, last, left = 0, len(entities), []
        for term in self.terms:
            bounds = time_bounds(term) if term.name == self.order.tokens[0] else None
            if bounds is None:
                left.append(term)
                continue
            # An entity without the time sorts as -1 and no condition on the time matches it.
            first = max(first, bisect_left(entities, bounds[0] or 0, key=moment))
            if bounds[1] is not None:
                last = min(last, bisect_left(entities, bounds[1], key=moment))
        return range(first, max(first, last)), left

    def _predicates(self, terms: Iterable[Term]) -> list[Predicate]:
        found: list[Predicate] = []
        covers = self.scope.predicate()
        if covers is not None:
            found.append(lambda entity: covers(entity.service_path))
        alternatives = [selector.predicates() for selector in self.selectors]
        if len(alternatives) == 1:
            found.extend(alternatives[0])
        elif alternatives and all(alternatives):
            found.append(lambda entity: any(all(test(entity) for test in tests) for tests in alternatives))
        found.extend([self.near] if self.near is not None else [])
        found.extend(predicate(term) for term in terms)
        found.extend(predicate(term, of_metadata=True) for term in self.metadata_terms)
        return found


def _filtered(entities: Iterable[StoredEntity], predicates: list[Predicate]) -> Iterable[StoredEntity]:
    selected = entities
    for test in predicates:
        selected = filter(test, selected)
    return selected


def terms_of(expression: str | None, parameter: str = "q") -> tuple[Term, ...]:
    """The conditions of an optional expression."""
    return parse_terms(expression, parameter) if expression else ()
