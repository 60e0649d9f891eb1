"""NGSI-LD entities as the broker keeps and shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from contexture_sandbox.context_broker.times import shown

HEAD = frozenset(("id", "type", "scope", "@context"))
VALUE_MEMBERS = ("value", "object", "languageMap", "vocab", "json", "valueList", "objectList")


@dataclass(frozen=True, slots=True)
class Document:
    """One entity; `number` is its place in the order of creation. Times are microseconds since 1970."""

    content: Mapping[str, object]
    created_us: int
    modified_us: int
    number: int

    @property
    def id(self) -> str:
        """Unique within a tenant, whatever the type."""
        return str(self.content["id"])

    @property
    def types(self) -> tuple[str, ...]:
        """One or more (clause 4.16)."""
        return texts(self.content["type"])

    @property
    def scopes(self) -> tuple[str, ...]:
        """None, one or more (clause 4.18)."""
        return texts(self.content.get("scope", []))

    def shown(self, *, system: bool, simplified: bool = False) -> dict[str, object]:
        """The entity as it is answered.

        Args:
            system: adds the broker's own times (`options=sysAttrs`).
            simplified: values alone (`options=keyValues`, clause 4.5.4).
        """
        content = self.content
        if simplified:
            content = {name: value if name in HEAD else _simple(value) for name, value in content.items()}
        if not system:
            return dict(content)
        times = {"createdAt": shown(self.created_us), "modifiedAt": shown(self.modified_us)}
        if simplified:
            return {**content, **times}
        dated = {name: value if name in HEAD else _dated(value, times) for name, value in content.items()}
        return dated | times


@dataclass(slots=True)
class Documents:
    """The entities of one tenant, by id; `history` has all that each ever was, also what was deleted since."""

    held: dict[str, Document] = field(default_factory=dict)
    history: dict[str, list[Document]] = field(default_factory=dict)
    written: int = 0

    def put(self, content: Mapping[str, object], now_us: int) -> Document:
        """Keep an entity, or replace the one of its id, which keeps its creation."""
        self.written += 1
        old = self.held.get(str(content["id"]))
        created, number = (old.created_us, old.number) if old else (now_us, self.written)
        document = Document(content, created, now_us, number)
        self.held[document.id] = document
        self.history.setdefault(document.id, []).append(document)
        return document


def texts(value: object) -> tuple[str, ...]:
    """A text, or a list of them."""
    return tuple(str(one) for one in value) if isinstance(value, list) else (str(value),)


def _simple(attribute: object) -> object:
    if isinstance(attribute, list):
        return {"dataset": {str(one.get("datasetId", "@none")): _simple(one) for one in attribute}}
    if not isinstance(attribute, dict):
        return attribute
    return next((attribute[member] for member in VALUE_MEMBERS if member in attribute), None)


def _dated(value: object, times: Mapping[str, str]) -> object:
    if isinstance(value, list):
        return [_dated(one, times) for one in value]
    return {**value, **times} if isinstance(value, dict) else value
