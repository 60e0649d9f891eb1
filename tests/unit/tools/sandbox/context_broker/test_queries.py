"""Which entities an expression, an order and a page select."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.context_broker import Client
from contexture_sandbox.context_broker.loading import SeedEntity, load


@pytest.fixture
def parks(client: Client) -> Client:
    client.create(
        "a", trees={"value": 10}, name={"value": "Retiro"}, opened={"type": "DateTime", "value": "1868-01-01"}
    )
    client.create("b", trees={"value": 20}, name={"value": "Ciutadella"}, lit={"value": True})
    client.create("c", trees={"value": "10"}, place={"value": {"city": "Sevilla", "zones": [1, 2]}})
    client.create(
        "d", "Garden", trees={"value": 30, "metadata": {"accuracy": {"value": 0.5}}}, tags={"value": ["x", "y"]}
    )
    return client


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("trees>10", ["b", "d"]),
        ("trees>=10", ["a", "b", "d"]),
        ("trees<20", ["a"]),
        ("trees==10", ["a"]),
        ("trees:10", ["a"]),
        ("trees=='10'", ["c"]),
        ("trees!=10", ["b", "c", "d"]),
        ("trees==10..20", ["a", "b"]),
        ("trees==10,30", ["a", "d"]),
        ("trees!=10,30", ["b", "c"]),
        ("name==Retiro", ["a"]),
        ("name~=^C", ["b"]),
        ("lit==true", ["b"]),
        ("lit", ["b"]),
        ("!lit", ["a", "c", "d"]),
        ("place.city==Sevilla", ["c"]),
        ("tags==y", ["d"]),
        ("opened<1900-01-01T00:00:00Z", ["a"]),
        ("opened==1860-01-01T00:00:00Z..1870-01-01T00:00:00Z", ["a"]),
        ("trees>5;trees<25", ["a", "b"]),
        ("servicePath==/parks", ["a", "b", "c", "d"]),
        ("nothing>1", []),
    ],
)
def test_an_expression_selects(parks: Client, expression: str, expected: list[str]) -> None:
    assert parks.ids(q=expression) == expected


def test_a_metadata_expression_selects(parks: Client) -> None:
    assert parks.ids(mq="trees.accuracy<1") == ["d"]


@pytest.mark.parametrize("expression", ["trees=10", "!", ";", "trees=!5"])
def test_an_expression_that_is_none_is_refused(parks: Client, expression: str) -> None:
    answer = parks.ask("GET", "v2/entities", q=expression)
    assert answer.status == 400
    assert orjson.loads(answer.body)["description"] == "invalid character found in URI param /q/"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("id", ["a", "b", "c", "d"]),
        ("!id", ["d", "c", "b", "a"]),
        ("trees", ["a", "b", "d", "c"]),
        ("type,!id", ["d", "c", "b", "a"]),
        ("!dateCreated", ["d", "c", "b", "a"]),
    ],
)
def test_an_order_sorts_numbers_before_texts(parks: Client, order: str, expected: list[str]) -> None:
    assert parks.ids(orderBy=order) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("^[ab]$", ["a", "b"]),
        ("b|c", ["b", "c"]),
        ("[[:digit:]]", []),
        ("(?=a)", []),
        ("[", []),
        (".*", ["a", "b", "c", "d"]),
    ],
)
def test_id_patterns_are_posix_and_an_invalid_one_matches_nothing(
    parks: Client, pattern: str, expected: list[str]
) -> None:
    assert parks.ids(idPattern=pattern) == expected


def test_attributes_are_shown_in_byte_order_and_builtins_only_when_named(parks: Client) -> None:
    (entity,) = parks.get(id="a", attrs="servicePath,dateCreated,*")
    assert list(entity) == ["id", "type", "name", "opened", "trees", "dateCreated", "servicePath"]
    (named,) = parks.get(id="a", attrs="trees,missing,servicePath,name", options="keyValues")
    assert named == {"id": "a", "type": "Park", "trees": 10, "servicePath": "/parks", "name": "Retiro"}
    assert list(named) == ["id", "type", "trees", "servicePath", "name"]


def test_values_and_unique_values(parks: Client) -> None:
    parks.create("e", one={"value": 1}, other={"value": 1})
    assert parks.get(id="e", options="values") == [[1, 1]]
    assert parks.get(id="e", options="unique") == [[1]]


def test_metadata_are_chosen_by_name(parks: Client) -> None:
    (entity,) = parks.get(id="d", attrs="trees", metadata="accuracy")
    assert list(entity["trees"]["metadata"]) == ["accuracy"]
    (entity,) = parks.get(id="d", attrs="trees", metadata="dateModified")
    assert list(entity["trees"]["metadata"]) == ["dateModified"]


def test_several_selectors_of_a_query_add_up(parks: Client) -> None:
    body = {"entities": [{"id": "a"}, {"idPattern": ".*", "type": "Garden"}], "expression": {"q": "trees>5"}}
    answer = parks.ask("POST", "v2/op/query", body, options="count")
    assert [entity["id"] for entity in orjson.loads(answer.body)] == ["a", "d"]
    assert answer.headers["fiware-total-count"] == "2"


def test_a_type_in_a_query_body_is_one_name_and_no_list(parks: Client) -> None:
    body = {"entities": [{"idPattern": ".*", "type": "Garden,Park"}]}
    assert orjson.loads(parks.ask("POST", "v2/op/query", body).body) == []


def test_a_selector_of_a_query_body_needs_an_id_or_a_pattern_of_ids(parks: Client) -> None:
    answer = parks.ask("POST", "v2/op/query", {"entities": [{"type": "Garden"}]})
    assert answer.status == 400
    assert orjson.loads(answer.body)["description"] == "nor /id/ nor /idPattern/ present"


TIMES = st.lists(st.integers(min_value=0, max_value=5), min_size=0, max_size=40)


@settings(deadline=None)
@given(TIMES, st.integers(min_value=1, max_value=7), st.sampled_from(["dateCreated", "dateModified"]))
def test_a_keyset_walk_finds_every_entity_whatever_times_they_share(
    milliseconds: list[int], limit: int, name: str
) -> None:
    client = Client()
    for number, offset in enumerate(milliseconds):
        at = f"2026-01-01T00:00:00.{offset:03d}500Z"
        load(client.broker.store, [SeedEntity("city", "/parks", {"id": f"p{number}", "type": "T"}, at, at)])

    found, cursor, offset = set[str](), "1970-01-01T00:00:00.000Z", 0
    for _ in range(200):
        page = client.get(
            q=f"{name}>={cursor}", orderBy=f"{name},id,type", attrs=name, limit=str(limit), offset=str(offset)
        )
        found |= {entity["id"] for entity in page}
        if len(page) < limit:
            break
        last = page[-1][name]["value"]
        cursor, offset = (cursor, offset + limit) if last == cursor else (last, 0)

    assert found == {f"p{number}" for number in range(len(milliseconds))}


@settings(deadline=None)
@given(TIMES, st.integers(min_value=1, max_value=7))
def test_pages_of_an_unchanging_store_add_up_to_the_count(milliseconds: list[int], limit: int) -> None:
    client = Client()
    for number, value in enumerate(milliseconds):
        client.create(f"p{number}", n={"value": value})

    pages = [client.ids(q="n>1", limit=str(limit), offset=str(start)) for start in range(0, 45, limit)]
    answer = client.ask("GET", "v2/entities", q="n>1", options="count", limit="0")

    assert answer.headers["fiware-total-count"] == str(sum(value > 1 for value in milliseconds))
    assert [one for page in pages for one in page] == [f"p{n}" for n, value in enumerate(milliseconds) if value > 1]


GEO = [
    ({"georel": "near;maxDistance:1000", "geometry": "point", "coords": "40.0,-3.0"}, ["here"]),
    ({"georel": "near;minDistance:1000", "geometry": "point", "coords": "40.0,-3.0"}, ["far", "line"]),
    ({"georel": "coveredBy", "geometry": "box", "coords": "39.0,-4.0;41.0,-2.0"}, ["here"]),
    ({"georel": "intersects", "geometry": "polygon", "coords": "39,-4;41,-4;41,-2;39,-2;39,-4"}, ["here", "line"]),
    ({"georel": "disjoint", "geometry": "polygon", "coords": "39,-4;41,-4;41,-2;39,-2;39,-4"}, ["far"]),
    ({"georel": "equals", "geometry": "point", "coords": "40,-3"}, ["here"]),
]


@pytest.mark.parametrize(("where", "expected"), GEO)
def test_places_are_selected_by_latitude_and_longitude(
    client: Client, where: dict[str, str], expected: list[str]
) -> None:
    places: dict[str, tuple[str, object]] = {
        "here": ("Point", [-3.0, 40.0]), "far": ("Point", [-3.0, 50.0]), "line": ("LineString", [[-3, 40.5], [-3, 51]]),
    }  # fmt: skip
    for name, (kind, coordinates) in places.items():
        client.create(name, location={"type": "geo:json", "value": {"type": kind, "coordinates": coordinates}})
    client.create("nowhere")
    assert client.ids(**where) == expected


@pytest.mark.parametrize("given", [{"georel": "near"}, {"georel": "near", "geometry": "point", "coords": "x"}])
def test_an_incomplete_place_is_refused(client: Client, given: dict[str, str]) -> None:
    assert client.ask("GET", "v2/entities", **given).status == 400
