"""Which request asks for a page: an address, or a body where the address would be too long."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import httpx
import pytest

from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.transport import HttpRequest
from contexture.sources.ngsi.ngsiv2 import NgsiV2Client
from contexture.sources.ngsi.query import LONGEST_ADDRESS, EntityQuery, build_entities_request
from contexture_sandbox.context_broker import SeedEntity, api
from contexture_sandbox.context_broker.broker import Broker, Call
from contexture_sandbox.context_broker.loading import load

SCOPE = {"fiware-servicepath": "/a"}


def asked(query: EntityQuery, since: str | None = None) -> HttpRequest:
    return build_entities_request(SCOPE, query.page_parameters(since=since, offset=3, limit=50))


def test_a_short_question_is_an_address() -> None:
    question = asked(EntityQuery("/a", types=("car", "van")))
    assert (question.method, question.path, question.body) == ("GET", "/v2/entities", None)
    assert question.parameters["type"] == "car,van"
    assert question.headers == {"fiware-servicepath": "/a"}


def test_a_long_question_has_its_selection_in_a_body_and_its_paging_in_the_address() -> None:
    query = EntityQuery(
        "/a",
        types=("car", "van"),
        id_pattern="^urn:(a|b)",
        q="name==" + "x" * 2000,
        mq="speed.accuracy>0.9",
        attributes=("speed",),
        georel="near;maxDistance:1000",
        geometry="point",
        coords="40.4,-3.7",
    )
    question = asked(query, since="2026-01-01T00:00:00.000Z")
    assert (question.method, question.path) == ("POST", "/v2/op/query")
    assert question.parameters == {
        "limit": "50",
        "offset": "3",
        "options": "skipForwarding",
        "orderBy": "dateCreated,id,type",
    }
    assert question.headers == {"fiware-servicepath": "/a", "content-type": "application/json"}
    assert question.body is not None
    assert json.loads(question.body) == {
        "entities": [{"idPattern": "^urn:(a|b)", "type": "car"}, {"idPattern": "^urn:(a|b)", "type": "van"}],
        "attrs": ["dateCreated", "dateModified", "dateExpires", "servicePath", "speed"],
        "metadata": ["dateModified", "*"],
        "expression": {
            "q": f"name=={'x' * 2000};dateCreated>=2026-01-01T00:00:00.000Z",
            "mq": "speed.accuracy>0.9",
            "georel": "near;maxDistance:1000",
            "geometry": "point",
            "coords": "40.4,-3.7",
        },
    }


def test_metadata_asked_for_are_a_list_in_a_body() -> None:
    body = asked(EntityQuery("/a", q="a>" + "1" * 2000)).body
    assert body is not None
    assert json.loads(body)["metadata"] == ["dateModified", "*"]


@pytest.mark.parametrize(
    ("query", "selectors"),
    [
        (EntityQuery("/a", attributes=("x" * 2000,)), [{"idPattern": ".*"}]),
        (EntityQuery("/a", type_pattern="x" * 2000), [{"idPattern": ".*", "typePattern": "x" * 2000}]),
        (EntityQuery("/a", id_pattern="x" * 2000), [{"idPattern": "x" * 2000}]),
        (EntityQuery("/a", ids=("a", "b" * 2000)), [{"id": "a"}, {"id": "b" * 2000}]),
        (
            EntityQuery("/a", ids=("a", "b" * 2000), types=("t", "u")),
            [{"id": one, "type": kind} for one in ("a", "b" * 2000) for kind in ("t", "u")],
        ),
    ],
)
def test_what_is_not_selected_by_is_any(query: EntityQuery, selectors: list[dict[str, str]]) -> None:
    body = asked(query).body
    assert body is not None
    assert json.loads(body)["entities"] == selectors
    assert "expression" not in json.loads(body)


def test_the_length_counts_as_it_is_sent() -> None:
    parameters = EntityQuery("/a", id_pattern="x").page_parameters(since=None, offset=0, limit=1000)
    spare = LONGEST_ADDRESS - len(f"/v2/entities?{urlencode(parameters)}")
    assert build_entities_request({}, parameters | {"idPattern": "x" * (1 + spare)}).method == "GET"
    assert build_entities_request({}, parameters | {"idPattern": "x" * (2 + spare)}).method == "POST"
    # An accented letter takes six characters of an address.
    assert build_entities_request({}, parameters | {"idPattern": "é" * (2 + spare // 6)}).method == "POST"


def test_a_long_selection_is_counted_and_walked_as_a_short_one() -> None:
    store = Broker()
    load(
        store.store,
        (
            SeedEntity("s", "/a", {"id": f"e{number}", "type": f"t{number % 3}"}, f"2026-01-01T00:00:{number // 3:02}Z")
            for number in range(30)
        ),
    )
    methods: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        methods.append(request.method)
        segments = tuple(request.url.path.strip("/").split("/"))
        call = Call(request.method, segments, dict(request.url.params), dict(request.headers), request.content, "c")
        given = api.answer(store, call)
        return httpx.Response(given.status, content=given.body, headers=dict(given.headers))

    chosen = ("t0", "t2", *(f"none{number}" for number in range(300)))
    with NgsiV2Client(BrokerConnection("http://broker"), "s", transport=httpx.MockTransport(answer)) as broker:
        query = EntityQuery("/a", types=chosen, page_size=4)
        assert broker.count(query) == 20
        walked = [head.id for page in broker.scan(query) for head in page.heads]
    assert sorted(map(str, walked)) == sorted(f"e{number}" for number in range(30) if number % 3 != 1)
    assert set(methods) == {"POST"}


CLOSED = {
    *("limit", "offset", "options", "attrs", "metadata", "orderBy", "q", "mq"),
    *("id", "type", "typePattern", "idPattern", "georel", "geometry", "coords"),
}


@pytest.mark.parametrize("filler", ["", "x" * 2000], ids=["by address", "by body"])
def test_nothing_beyond_the_closed_list_is_ever_asked_for(filler: str) -> None:
    """A broker answers everything to a parameter it doesn't know, and other forms of its answer lose types."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=[], headers={"fiware-total-count": "0"})

    place = {"georel": "near;maxDistance:1", "geometry": "point", "coords": "1,2"}
    queries = [
        EntityQuery("/a", types=("t",), id_pattern="^a" + filler, q="a>1", mq="a.b>1", attributes=("a",), **place),
        EntityQuery("/#", type_pattern="^t" + filler, field="dateModified", since="2026-01-01"),
        EntityQuery("/a/#", ids=("a",), attributes=("a" + filler,), identities_only=not filler, until="2026-01-01"),
    ]
    with NgsiV2Client(BrokerConnection("http://broker"), "s", transport=httpx.MockTransport(answer)) as broker:
        for query in queries:
            broker.count(query)
            broker.time_at(query, 5)
            list(broker.scan(query))
            list(broker.scan_by_id(query))

    about_entities = [request for request in asked if request.url.path != "/v2/subscriptions"]
    bodies = [json.loads(request.content) for request in about_entities if request.content]
    given = {name for request in about_entities for name in request.url.params}
    given |= {name for body in bodies for name in (*body, *body.get("expression", {}), *body["entities"][0])}
    assert given <= CLOSED | {"entities", "expression"}
    assert {request.url.params["options"] for request in about_entities} == {"skipForwarding", "count,skipForwarding"}
    assert {request.headers["fiware-servicepath"] for request in about_entities} == {"/a", "/#", "/a/#"}
    assert bool(bodies) is bool(filler)


def test_a_long_question_that_takes_too_long_is_asked_for_in_halves() -> None:
    limits: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        limits.append(int(request.url.params["limit"]))
        if limits[-1] > 250:
            raise httpx.ReadTimeout("slow")
        return httpx.Response(200, json=[{"id": "a", "type": "t"}])

    with NgsiV2Client(BrokerConnection("http://broker"), "s", transport=httpx.MockTransport(answer)) as broker:
        pages = list(broker.scan(EntityQuery("/a", q="a>" + "1" * 2000)))
    assert (limits, len(pages)) == ([1000, 500, 250, 250], 1)
