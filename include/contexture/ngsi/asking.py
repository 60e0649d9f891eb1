"""How a page of entities is asked for: by an address alone, or with the selection in a body where that is too long.

Servers and proxies refuse addresses beyond some size (many at 8 kB, some at 2), while a query in a body has a megabyte.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from contexture.ngsi.transport import Question

LONGEST_ADDRESS = 2000
"""Characters of path and parameters, as they are sent, up to which entities are asked for by GET."""

_ENTITIES = "/v2/entities"
_QUERY = "/v2/op/query"
_PAGING = ("limit", "offset", "options", "orderBy")
_EXPRESSION = ("q", "mq", "georel", "geometry", "coords")
_ANY_ID = ".*"


def entities_question(headers: Mapping[str, str], parameters: Mapping[str, str]) -> Question:
    """The request for entities that these URL parameters select; both ways give the same rows in the same order.

    Args:
        headers: the scope of the question.
        parameters: of the closed list in `contexture.ngsi.query`.
    """
    if len(f"{_ENTITIES}?{urlencode(parameters)}") <= LONGEST_ADDRESS:
        return Question("GET", _ENTITIES, headers, parameters)
    paging = {name: value for name, value in parameters.items() if name in _PAGING}
    with_body = {**headers, "content-type": "application/json"}
    return Question("POST", _QUERY, with_body, paging, msgspec.json.encode(_body(parameters)))


def _body(parameters: Mapping[str, str]) -> dict[str, object]:
    expression = {name: parameters[name] for name in _EXPRESSION if name in parameters}
    body: dict[str, object] = {"entities": _selectors(parameters)}
    body |= {name: parameters[name].split(",") for name in ("attrs", "metadata") if name in parameters}
    return body | ({"expression": expression} if expression else {})


def _selectors(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    """One selector for each id and type: in a body each is one name, never a list. The id always needs a condition."""
    return [{**identifier, **kind} for identifier in _ids(parameters) for kind in _types(parameters)]


def _ids(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    if "id" in parameters:
        return [{"id": one} for one in parameters["id"].split(",")]
    return [{"idPattern": parameters.get("idPattern", _ANY_ID)}]


def _types(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    if "type" in parameters:
        return [{"type": name} for name in parameters["type"].split(",")]
    return [{"typePattern": parameters["typePattern"]} if "typePattern" in parameters else {}]
