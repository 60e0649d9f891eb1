"""Partial submissions: items added to an item scheme that is there, or put in the place of its own."""

from __future__ import annotations

from typing import Any

import orjson

from contexture.sources.sdmx import Artefact
from contexture_sandbox.registry.refusals import bad_request
from contexture_sandbox.registry.stubs import artefact_element, serialised, whole_again

_NO_ITEMS = frozenset({"links", "annotations"})


def has_items(artefact: Artefact) -> bool:
    """Whether it is an item scheme: only those are merged, all else is replaced."""
    return artefact.kind.endswith("Scheme") or artefact.kind in {"Codelist", "ValueList"}


def merged(there: Artefact, given: Artefact, *, replacing: bool) -> Artefact:
    """The artefact that is there with the items of the one that is given.

    Args:
        there: what is stored.
        given: of the same URN and format, with some items.
        replacing: put an item in the place of one with its id; otherwise that is refused.

    Raises:
        Refusal: 400, an item is there already.
    """
    content = _json(there, given, replacing) if there.format.is_json else _xml(there, given, replacing)
    return whole_again(there, content)


def _xml(there: Artefact, given: Artefact, replacing: bool) -> bytes:
    element = artefact_element(there.message())
    own = {item.get("id"): item for item in _items(element)}
    for item in _items(artefact_element(given.message())):
        identifier = item.get("id")
        item.tail = None
        if identifier not in own:
            element.append(item)
            continue
        _refuse(identifier, replacing)
        element.replace(own[identifier], item)
    return serialised(element)


def _items(element: Any) -> list[Any]:
    return [child for child in element if isinstance(child.tag, str) and child.get("id") is not None]


def _json(there: Artefact, given: Artefact, replacing: bool) -> bytes:
    members: dict[str, Any] = orjson.loads(there.content)
    for name, items in orjson.loads(given.content).items():
        if isinstance(items, list) and name not in _NO_ITEMS and all("id" in item for item in items):
            members[name] = _joined(members.get(name, []), items, replacing)
    return orjson.dumps(members)


def _joined(own: list[dict[str, Any]], given: list[dict[str, Any]], replacing: bool) -> list[dict[str, Any]]:
    joined = {item["id"]: item for item in own}
    for item in given:
        if item["id"] in joined:
            _refuse(item["id"], replacing)
        joined[item["id"]] = item
    return list(joined.values())


def _refuse(identifier: str, replacing: bool) -> None:
    if not replacing:
        raise bad_request(f"the item {identifier[:80]} exists already; Append adds only what is new")
