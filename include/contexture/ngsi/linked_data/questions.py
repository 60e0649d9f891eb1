"""A selection of entities as the URL parameters of NGSI-LD."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from contexture.errors import ConfigurationError
from contexture.ngsi.query import EntityQuery

ENTITIES = "/ngsi-ld/v1/entities"
TYPES = "/ngsi-ld/v1/types"
SUBSCRIPTIONS = "/ngsi-ld/v1/subscriptions"
EVERY_SCOPE = frozenset(("/", "/#"))
"""Service paths that select no scope: NGSI-LD has scopes in their place, and an entity may have none."""

_GEOMETRIES = {"point": "Point", "line": "LineString", "polygon": "Polygon"}
_RELATIONS = {"coveredBy": "within"}
_TYPES_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class TypeQuestion:
    """What is asked about the entities of some types.

    Attributes:
        types: their names, joined by commas: entities of any of them.
        since: only what was modified from this time on; all where None.
    """

    query: EntityQuery
    types: str
    since: str | None = None

    def page(self, *, offset: int, limit: int | None, entity_map: bool) -> dict[str, str]:
        """The parameters of one page; without a limit the broker chooses."""
        # The simplified form is the smallest that has id, type and the time of creation.
        asked = {"options": "keyValues,sysAttrs" if self.query.identities_only else "sysAttrs"}
        asked |= {"count": "true", "offset": str(offset)}
        if limit is not None:
            asked["limit"] = str(limit)
        if entity_map:
            asked["entityMap"] = "true"
        return self.selection() | asked

    def count(self) -> dict[str, str]:
        """The parameters that ask how many there are."""
        return self.selection() | {"limit": "0", "count": "true"}

    def selection(self) -> dict[str, str]:
        """The parameters that say which entities are meant."""
        query = self.query
        given = {
            "type": self.types,
            "id": ",".join(query.ids),
            "idPattern": query.id_pattern,
            "q": _conditions((query.q, query.mq), self.since),
            "attrs": ",".join(query.attributes),
            "scopeQ": None if EVERY_SCOPE.intersection(query.service_path.split(",")) else query.service_path,
            **_geographic(query),
        }
        return {name: value for name, value in given.items() if value}


def packed(names: Iterable[str]) -> Iterator[str]:
    """Types joined by commas, as many at once as an address has room for."""
    held, length = list[str](), 0
    for name in names:
        if held and length + len(quote(name, safe="")) > _TYPES_CHARACTERS:
            yield ",".join(held)
            held, length = [], 0
        held.append(name)
        length += len(quote(name, safe="")) + 3
    if held:
        yield ",".join(held)


def headers(tenant: str, context: str) -> dict[str, str]:
    """What says whose entities are meant, and by which @context names are written."""
    sent = {"accept": "application/json"}
    if tenant:
        sent["ngsild-tenant"] = tenant
    if context:
        sent["link"] = f'<{context}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
    return sent


def _conditions(given: Iterable[str | None], since: str | None) -> str | None:
    """All conditions at once; alternatives of the user's stay together.

    NGSIv2's conditions on metadata are such on attributes of attributes here, written alike (`speed.accuracy>0.9`).
    """
    parts = [part for part in ((text or "").strip().strip(";") for text in given) if part]
    if since is not None:
        parts.append(f"modifiedAt>={since}")
    if len(parts) > 1:
        parts = [f"({part})" if "|" in part else part for part in parts]
    return ";".join(parts) or None


def _geographic(query: EntityQuery) -> Mapping[str, str]:
    """NGSIv2's georel, geometry and coords as NGSI-LD writes them: GeoJSON names, longitude first."""
    if query.georel is None or query.geometry is None or query.coords is None:
        return {}
    if query.geometry not in _GEOMETRIES:
        raise ConfigurationError(
            f"NGSI-LD has no geometry {query.geometry!r}", next_step="write source.geometry and coords as a polygon"
        )
    try:
        points = [[float(part) for part in reversed(pair.split(","))] for pair in query.coords.split(";")]
    except ValueError:
        raise ConfigurationError(
            "source.coords are not numbers", next_step="write latitude,longitude joined by ;"
        ) from None
    shaped: object = {"point": points[0], "line": points, "polygon": [points]}[query.geometry]
    relation = _RELATIONS.get(query.georel, query.georel).replace("Distance:", "Distance==")
    coordinates = json.dumps(shaped, separators=(",", ":"))
    return {"georel": relation, "geometry": _GEOMETRIES[query.geometry], "coordinates": coordinates}
