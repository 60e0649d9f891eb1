"""A selection of entities as the URL parameters of NGSI-LD."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.ngsi.query import EntityQuery

ENTITIES = "/ngsi-ld/v1/entities"
TYPES = "/ngsi-ld/v1/types"
EVERY_SCOPE = frozenset(("/", "/#"))
"""Service paths that select no scope: NGSI-LD has scopes in their place, and an entity may have none."""

_GEOMETRIES = {"point": "Point", "line": "LineString", "polygon": "Polygon"}


@dataclass(frozen=True, slots=True)
class TypeQuestion:
    """What is asked about the entities of one type.

    Attributes:
        since: only what was modified from this time on; all where None.
    """

    query: EntityQuery
    type: str
    since: str | None = None

    def page(self, *, offset: int, limit: int | None, entity_map: bool) -> dict[str, str]:
        """The parameters of one page; without a limit the broker chooses."""
        asked = {"options": "sysAttrs", "count": "true", "offset": str(offset)}
        if limit is not None:
            asked["limit"] = str(limit)
        if entity_map:
            asked["entityMap"] = "true"
        return self._selection() | asked

    def count(self) -> dict[str, str]:
        """The parameters that ask how many there are."""
        return self._selection() | {"limit": "0", "count": "true"}

    def _selection(self) -> dict[str, str]:
        query = self.query
        scope = query.service_path
        given = {
            "type": self.type,
            "idPattern": query.id_pattern,
            "q": _conditions(query.q, self.since),
            "attrs": ",".join(query.attributes),
            "scopeQ": None if scope in EVERY_SCOPE else scope,
            **_geographic(query),
        }
        return {name: value for name, value in given.items() if value}


def headers(tenant: str, context: str) -> dict[str, str]:
    """What says whose entities are meant, and by which @context names are written."""
    sent = {"accept": "application/json"}
    if tenant:
        sent["ngsild-tenant"] = tenant
    if context:
        sent["link"] = f'<{context}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'
    return sent


def _conditions(q: str | None, since: str | None) -> str | None:
    own = (q or "").strip().strip(";")
    if since is None:
        return own or None
    reached = f"modifiedAt>={since}"
    if not own:
        return reached
    return f"({own});{reached}" if "|" in own else f"{own};{reached}"


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
    relation = query.georel.replace("Distance:", "Distance==")
    coordinates = json.dumps(shaped, separators=(",", ":"))
    return {"georel": relation, "geometry": _GEOMETRIES[query.geometry], "coordinates": coordinates}
