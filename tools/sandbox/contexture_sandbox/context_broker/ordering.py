"""`orderBy`: attributes, builtins, `id`, `type`, `servicePath`; `!` reverses. The default is creation time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contexture_sandbox.context_broker.answers import bad_request
from contexture_sandbox.context_broker.expressions import BUILTIN_TIMES, comparable
from contexture_sandbox.context_broker.model import StoredEntity


@dataclass(frozen=True, slots=True)
class Order:
    """The tokens of one `orderBy`."""

    tokens: tuple[str, ...] = ("dateCreated",)

    def sort(self, entities: list[StoredEntity]) -> None:
        """Sort in place. Ties keep the order the entities are stored in, which no client may rely on."""
        if not any(token.startswith("!") for token in self.tokens):
            keys = [_key(token) for token in self.tokens]
            entities.sort(key=keys[0] if len(keys) == 1 else lambda entity: tuple(key(entity) for key in keys))
            return
        for token in reversed(self.tokens):
            entities.sort(key=_key(token.removeprefix("!")), reverse=token.startswith("!"))

    @property
    def leading_time(self) -> Callable[[StoredEntity], int] | None:
        """The builtin time the order begins with, ascending: what a time condition can be looked up by."""
        name = self.tokens[0]
        return _moment(name) if name in BUILTIN_TIMES else None


def parse_order(tokens: tuple[str, ...]) -> Order:
    """The order a client asked for.

    Raises:
        Refusal: 400, a token twice.
    """
    names = [token.removeprefix("!") for token in tokens]
    if len(set(names)) != len(names):
        raise bad_request("duplicate orderBy token detected")
    return Order(tokens) if tokens else Order()


def _moment(name: str) -> Callable[[StoredEntity], int]:
    read = BUILTIN_TIMES[name]
    return lambda entity: -1 if (moment := read(entity)) is None else moment


def _key(name: str) -> Callable[[StoredEntity], Any]:
    if name in BUILTIN_TIMES:
        return _moment(name)
    if name in {"id", "type"}:
        return (lambda entity: entity.id) if name == "id" else (lambda entity: entity.type)
    if name == "servicePath":
        return lambda entity: entity.service_path
    return lambda entity: _attribute_key(entity, name)


def _attribute_key(entity: StoredEntity, name: str) -> tuple[int, object]:
    attribute = entity.attributes.get(name)
    return (-1, 0) if attribute is None else comparable(attribute.decoded())
