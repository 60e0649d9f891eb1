"""`GET /ngsi-ld/v1/entities`: the requested page, and the headers that give its position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from contexture_sandbox.context_broker.linked_data.flavours import Flavour
from contexture_sandbox.context_broker.linked_data.problems import Problem, bad_request

SELECTORS = ("type", "id", "idPattern", "attrs", "q", "georel", "scopeQ")
_LOCAL = ("local", "localOnly")


@dataclass(frozen=True, slots=True)
class Window:
    """What part of a list is asked for, and whether its whole length is."""

    limit: int
    offset: int
    count: bool

    def headers(self, path: str, parameters: Mapping[str, str], total: int) -> dict[str, str]:
        """`NGSILD-Results-Count`, and `Link` to the pages before and after (clause 6.3.10)."""
        links = []
        if self.limit and self.offset + self.limit < total:
            links.append(self._link(path, parameters, self.offset + self.limit, "next"))
        if self.limit and self.offset:
            links.append(self._link(path, parameters, max(0, self.offset - self.limit), "prev"))
        found = {"link": ", ".join(links)} if links else {}
        return found | ({"ngsild-results-count": str(total)} if self.count else {})

    def _link(self, path: str, parameters: Mapping[str, str], offset: int, relation: str) -> str:
        asked = urlencode({**parameters, "limit": str(self.limit), "offset": str(offset)})
        return f'<{path}?{asked}>;rel="{relation}";type="application/json"'


def window(parameters: Mapping[str, str], flavour: Flavour) -> Window:
    """The page that the parameters ask for.

    Raises:
        Problem: a number is none, or the page is larger than the broker gives.
    """
    count = parameters.get("count") == "true"
    limit = _number(parameters.get("limit", str(flavour.default_limit)))
    if limit > flavour.maximum_limit:
        status, error, words = flavour.over_limit
        raise Problem(status, error, "Too many results", words.format(limit=limit, maximum=flavour.maximum_limit))
    if limit == 0 and not count:
        raise bad_request("limit 0 needs count=true")
    return Window(limit, _number(parameters.get("offset", "0")), count)


def refuse_too_broad(parameters: Mapping[str, str], flavour: Flavour) -> None:
    """Refuses a query that selects by nothing (clause 5.7.2), unless it asks for what the broker itself holds.

    Raises:
        Problem: 400.
    """
    if flavour.too_broad is None or any(parameters.get(name) for name in SELECTORS):
        return
    if not any(parameters.get(name) == "true" for name in _LOCAL):
        raise bad_request(flavour.too_broad, "one of id, type, attrs, q or georel is needed")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise bad_request("Invalid page", f"{text} is no number")
    return int(text)
