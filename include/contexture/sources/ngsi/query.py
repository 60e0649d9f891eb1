"""Which entities to request, as the closed list of URL parameters that a broker understands.

A broker ignores parameters it doesn't know (a misspelt `tpye` returns everything), so nothing free-form gets here.

Servers and proxies refuse addresses beyond some size (many at 8 kB, some at 2), while a query in a body has a megabyte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlencode

import msgspec

from contexture.errors import ConfigurationError
from contexture.publications.source import NgsiSource
from contexture.sources.http.transport import HttpRequest

LONGEST_ADDRESS = 2000
"""Characters of path and parameters, as they are sent, up to which entities are requested by GET."""

_ENTITIES = "/v2/entities"
_QUERY = "/v2/op/query"
_PAGING = ("limit", "offset", "options", "orderBy")
_EXPRESSION = ("q", "mq", "georel", "geometry", "coords")
_ANY_ID = ".*"


def build_entities_request(headers: Mapping[str, str], parameters: Mapping[str, str]) -> HttpRequest:
    """Builds the request for the entities that parameters select; GET and POST return the same rows in one order.

    Args:
        headers: the scope of the request.
        parameters: of the closed list in `contexture.sources.ngsi.query`.
    """
    if len(f"{_ENTITIES}?{urlencode(parameters)}") <= LONGEST_ADDRESS:
        return HttpRequest("GET", _ENTITIES, headers, parameters)
    paging = {name: value for name, value in parameters.items() if name in _PAGING}
    with_body = {**headers, "content-type": "application/json"}
    return HttpRequest("POST", _QUERY, with_body, paging, msgspec.json.encode(_body(parameters)))


def _body(parameters: Mapping[str, str]) -> dict[str, object]:
    expression = {name: parameters[name] for name in _EXPRESSION if name in parameters}
    body: dict[str, object] = {"entities": _selectors(parameters)}
    body |= {name: parameters[name].split(",") for name in ("attrs", "metadata") if name in parameters}
    return body | ({"expression": expression} if expression else {})


def _selectors(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns one selector for each id and type: in a body each is one name, never a list. An id is always needed."""
    return [{**identifier, **kind} for identifier in _ids(parameters) for kind in _types(parameters)]


def _ids(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    if "id" in parameters:
        return [{"id": one} for one in parameters["id"].split(",")]
    return [{"idPattern": parameters.get("idPattern", _ANY_ID)}]


def _types(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    if "type" in parameters:
        return [{"type": name} for name in parameters["type"].split(",")]
    return [{"typePattern": parameters["typePattern"]} if "typePattern" in parameters else {}]


KeysetField = Literal["dateCreated", "dateModified"]

MAX_PAGE_SIZE = 1000
BUILTINS = ("dateCreated", "dateModified", "dateExpires", "servicePath")

METADATA = "dateModified,*"
"""The metadata of every page. An attribute of the user then has `dateModified`, and a builtin has nothing.

This alone distinguishes a user's attribute called `dateModified` from the builtin that it hides. One builtin is enough:
each one more would be another name that the metadata of users cannot have.
"""

_CONDITIONS = re.compile(r"(?:'[^']*'|[^;'])+|'")
_CONDITION_NAME = re.compile(r"\s*!?\s*([^=!<>~:]*)")


@dataclass(frozen=True, slots=True)
class EntityQuery:
    """A selection of entities in one service path, and the order in which they are read.

    Attributes:
        service_path: `/a`, or `/a/#` with everything below it; sent as a header.
        type_pattern: a regular expression for types, in place of `types`.
        q: the user's own conditions; the walk adds its own to them.
        mq: conditions on metadata.
        attributes: the user attributes to read; all when empty.
        field: the time of the order. `dateCreated` never moves; `dateModified` shows what changed.
        since: where the walk starts, as the broker writes times; from the first entity when None.
        until: where it ends: what has this time or an earlier one is read, and little beyond; to the end when None.
        page_size: entities of one request, 1 to 1000.
        identities_only: leaves the user attributes out.
        ids: these entities alone.

    Raises:
        ConfigurationError: a value that no broker takes, or a condition of `q` on the field the walk needs for itself.
    """

    service_path: str = "/"
    types: tuple[str, ...] = ()
    id_pattern: str | None = None
    q: str | None = None
    attributes: tuple[str, ...] = ()
    georel: str | None = None
    geometry: str | None = None
    coords: str | None = None
    field: KeysetField = "dateCreated"
    since: str | None = None
    page_size: int = MAX_PAGE_SIZE
    identities_only: bool = False
    type_pattern: str | None = None
    mq: str | None = None
    until: str | None = None
    ids: tuple[str, ...] = ()

    @classmethod
    def of_source(cls, source: NgsiSource, service_path: str, page_size: int) -> EntityQuery:
        """Returns the query for what a publication selects below one service path."""
        return cls(
            service_path=service_path,
            types=source.types,
            ids=source.ids,
            id_pattern=source.id_pattern,
            type_pattern=source.type_pattern,
            q=source.query,
            mq=source.metadata_query,
            attributes=source.attributes,
            georel=source.georel,
            geometry=source.geometry,
            coords=source.coords,
            page_size=page_size,
        )

    def __post_init__(self) -> None:
        if not self.service_path.startswith("/"):
            raise _selection_error(
                f"the service path {self.service_path!r} does not start with /", "source.service_path"
            )
        if not 1 <= self.page_size <= MAX_PAGE_SIZE:
            raise _selection_error(
                f"a page of {self.page_size} is not between 1 and {MAX_PAGE_SIZE}", "source.page_size"
            )
        if self.types and self.type_pattern:
            raise _selection_error("types and type_pattern exclude each other", "source.types or type_pattern")
        if self.ids and self.id_pattern:
            raise _selection_error("ids and id_pattern exclude each other", "source.ids or id_pattern")
        geo = (self.georel, self.geometry, self.coords)
        if any(geo) and not all(geo):
            raise _selection_error("georel, geometry and coords go together", "source.georel, geometry and coords")
        if self.field in condition_names(self.q):
            # Two conditions on one field become one repeated key in the broker's database, which keeps only one.
            raise _selection_error(
                f"q has a condition on {self.field}, which this walk needs for itself", "source.query"
            )

    @property
    def known_path(self) -> str | None:
        """The service path of every entity in the response; None where the header selects more than one."""
        path = self.service_path
        if "," in path or path.endswith("#"):
            return None
        return path.rstrip("/") or "/"

    def page_parameters(self, *, since: str | None, offset: int, limit: int) -> dict[str, str]:
        """Returns the URL parameters of one page of the walk."""
        wanted = () if self.identities_only else (self.attributes or ("*",))
        parameters = {
            "limit": str(limit),
            "offset": str(offset),
            "options": "skipForwarding",
            "attrs": ",".join((*BUILTINS, *(name for name in wanted if name not in BUILTINS))),
            "metadata": METADATA,
            "orderBy": f"{self.field},id,type",
        }
        return parameters | self._selection(since)

    def count_parameters(self) -> dict[str, str]:
        """Returns the URL parameters that request how many entities there are, from `since` on."""
        parameters = {"limit": "1", "offset": "0", "options": "count,skipForwarding", "attrs": "servicePath"}
        return parameters | self._selection(self.since)

    def describe(self) -> str:
        """Describes the walk in one line, for the manifest; contains no secret."""
        parameters = self.page_parameters(since=self.since, offset=0, limit=self.page_size)
        return " ".join((self.service_path, *(f"{name}={value}" for name, value in parameters.items())))

    def _selection(self, since: str | None) -> dict[str, str]:
        given = {
            "type": ",".join(self.types),
            "typePattern": self.type_pattern,
            "id": ",".join(self.ids),
            "idPattern": self.id_pattern,
            "q": ";".join(part for part in ((self.q or "").strip().strip(";"), self._condition(since)) if part),
            "mq": (self.mq or "").strip().strip(";"),
            "georel": self.georel,
            "geometry": self.geometry,
            "coords": self.coords,
        }
        return {name: value for name, value in given.items() if value}

    def _condition(self, since: str | None) -> str | None:
        """Returns the one condition on the field of the walk: of two on one field, brokers ignore one."""
        if since is None:
            # No condition at all: entities without a time of their own match none.
            return None
        return f"{self.field}>={since}" if self.until is None else f"{self.field}=={since}..{self.until}"


def condition_names(q: str | None) -> frozenset[str]:
    """Returns the names in the conditions of a `q`, dotted paths cut at the first dot."""
    found = (_CONDITION_NAME.match(part) for part in _CONDITIONS.findall(q or ""))
    return frozenset(match[1].strip().split(".")[0].strip("'") for match in found if match)


def _selection_error(message: str, where: str) -> ConfigurationError:
    return ConfigurationError(message, next_step=f"correct {where} of the publication")
