"""JSON documents drawn by hypothesis: of the right outline, with anything in it.

Hypothesis reads its choices from bytes (`fuzz_one_input`), so the chance is that of the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.fuzz.target import request

_CHOICES_BYTES = 2_048
_TIMES = st.sampled_from(["2026-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-12:00", "2026"])
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**18, 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | _TIMES
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
_NAMES = st.sampled_from(
    ["id", "type", "value", "metadata", "dateModified", "servicePath", "a", "b", "alterationType", "TimeInstant"]
) | st.text(max_size=6)
_POSITIONS = st.lists(st.lists(st.lists(_SCALARS, max_size=3) | _SCALARS, max_size=5) | _SCALARS, max_size=4)
_GEOMETRIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["Point", "Polygon", "MultiPolygon", "GeometryCollection", "Feature"])},
    optional={"coordinates": _POSITIONS | _VALUES, "geometries": _VALUES, "geometry": _VALUES},
)
_KINDS = st.sampled_from(["Number", "DateTime", "geo:json", "geo:point", "geo:box", "Text", "Relationship", "None"])
_ATTRIBUTES = (
    st.fixed_dictionaries(
        {},
        optional={
            "type": _KINDS | _VALUES,
            "value": _GEOMETRIES | _VALUES | st.sampled_from(["1,2", "1,2;3,4", "-91,181"]),
            "metadata": st.dictionaries(_NAMES, st.fixed_dictionaries({"type": _KINDS, "value": _VALUES}) | _VALUES),
        },
    )
    | _VALUES
)
_ENTITIES = st.fixed_dictionaries(
    {"id": st.text(min_size=1, max_size=8) | _VALUES, "type": st.just("car") | _VALUES},
    optional={"speed": _ATTRIBUTES, "location": _ATTRIBUTES, "dateModified": _ATTRIBUTES},
).flatmap(lambda entity: st.dictionaries(_NAMES, _ATTRIBUTES, max_size=3).map(lambda more: {**more, **entity}))

_LINKED_KINDS = st.sampled_from(
    ["Property", "Relationship", "GeoProperty", "LanguageProperty", "VocabProperty", "JsonProperty", "ListProperty"]
)
_INSTANCES = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": _LINKED_KINDS | _VALUES,
            "value": _GEOMETRIES | st.fixed_dictionaries({"@type": st.text(max_size=4), "@value": _VALUES}) | _VALUES,
            "object": _VALUES,
            "languageMap": _VALUES,
            "datasetId": st.sampled_from(["urn:d:1", "@none", ""]) | _VALUES,
            "observedAt": _TIMES | _VALUES,
            "modifiedAt": _TIMES | _VALUES,
            "deletedAt": _TIMES,
            "unitCode": _VALUES,
        },
    ),
    lambda inner: st.fixed_dictionaries({"type": _LINKED_KINDS, "value": _VALUES, "below": inner | st.lists(inner)}),
    max_leaves=4,
)
_LINKED_ATTRIBUTES = _INSTANCES | st.lists(_INSTANCES, max_size=3) | _VALUES
_LINKED_ENTITIES = st.fixed_dictionaries(
    {"id": st.just("urn:ngsi-ld:car:1") | _VALUES, "type": st.just("car") | st.lists(st.text(max_size=3)) | _VALUES},
    optional={"@context": _VALUES, "scope": _VALUES, "speed": _LINKED_ATTRIBUTES, "expiresAt": _VALUES},
).flatmap(lambda entity: st.dictionaries(_NAMES, _LINKED_ATTRIBUTES, max_size=3).map(lambda more: {**more, **entity}))

_LEGACY_ATTRIBUTES = st.fixed_dictionaries(
    {"name": _NAMES | _VALUES},
    optional={
        "type": _VALUES,
        "value": _VALUES,
        "metadatas": st.lists(st.fixed_dictionaries({"name": _NAMES}, optional={"value": _VALUES}), max_size=2)
        | _VALUES,
    },
)
_LEGACY_ENTITIES = st.fixed_dictionaries(
    {"id": _VALUES, "type": _VALUES}, optional={"attributes": st.lists(_LEGACY_ATTRIBUTES, max_size=3) | _VALUES}
)
_NOTIFICATIONS = (
    st.fixed_dictionaries({"subscriptionId": _VALUES, "data": st.lists(_ENTITIES, max_size=2) | _VALUES})
    | st.fixed_dictionaries({"type": st.just("Notification"), "data": st.lists(_LINKED_ENTITIES, max_size=2)})
    | st.fixed_dictionaries(
        {"contextResponses": st.lists(st.fixed_dictionaries({"contextElement": _LEGACY_ENTITIES}), max_size=2)}
    )
)
_EVENT_NAMES = st.sampled_from(["time", "subject", "dataschema", "datacontenttype", "data", "data_base64", "ext"])
_EVENTS = st.fixed_dictionaries(
    {
        "specversion": st.just("1.0"),
        "id": st.text(min_size=1, max_size=4),
        "source": st.just("/c"),
        "type": st.just("t"),
    }
).flatmap(lambda event: st.dictionaries(_EVENT_NAMES, _VALUES, max_size=4).map(lambda more: {**event, **more}))


def _json(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _notified(document: object) -> bytes:
    return request({"Content-Type": "application/json"}, _json(document))


def _event(document: object) -> bytes:
    return request({"content-type": "application/cloudevents+json"}, _json(document))


DOCUMENTS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], bytes]]] = {
    "ngsi-v2": (_ENTITIES, _json),
    "ngsi-ld": (_LINKED_ENTITIES, _json),
    "ngsi-history": (_LINKED_ENTITIES, _json),
    "notifications": (_NOTIFICATIONS, _notified),
    "cloudevents": (_EVENTS, _event),
}
"""What is drawn for a target, and how it is written."""


class Drawing:
    """Draws documents."""

    def __init__(self, drawn: tuple[st.SearchStrategy[Any], Callable[[Any], bytes]]) -> None:
        strategy, self._write = drawn
        self._last: list[bytes] = []

        @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(strategy)
        def take(document: Any) -> None:
            self._last.append(self._write(document))

        # Hypothesis puts it on the function at run time.
        self._take: Callable[[bytes], object] = take.hypothesis.fuzz_one_input  # type: ignore[attr-defined]

    def drawn(self, random: Random) -> bytes:
        """The next document; an empty input where the choices made none."""
        self._last.clear()
        self._take(random.randbytes(_CHOICES_BYTES))
        return self._last[-1] if self._last else b""
