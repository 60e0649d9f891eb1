"""The habits of NGSI-LD brokers that a reader has to know, each with where it is from."""

from __future__ import annotations

from dataclasses import replace

import httpx
import pytest

from builders.linked_data import LinkedDataNetwork, device
from contexture_sandbox.context_broker import TestBroker
from contexture_sandbox.context_broker.linked_data import FLAVOURS, Flavour

ETSI = "https://uri.etsi.org/ngsi-ld/errors/"


def stocked(flavour: str, count: int, first: int = 0) -> LinkedDataNetwork:
    network = LinkedDataNetwork(flavour)
    network.face.load(device(number) for number in range(first, first + count))
    return network


@pytest.mark.parametrize(
    ("flavour", "default"),
    [
        ("orion-ld", 20),  # Orion-LD, doc/manuals/user/pagination.md
        ("scorpio", 50),  # Scorpio, application property scorpio.entity.default-limit
        ("stellio", 30),  # Stellio, application property application.pagination.limit-default
    ],
)
def test_a_page_has_the_default_size_when_none_is_asked_for(flavour: str, default: int) -> None:
    assert len(stocked(flavour, 120).ids(type="Device")) == default


@pytest.mark.parametrize(
    ("flavour", "largest", "status", "error"),
    [
        ("orion-ld", 1000, 400, "BadRequestData"),  # Orion-LD, src/lib/rest/uriParamNames and its limit check
        ("scorpio", 1000, 403, "TooManyResults"),  # Scorpio, QueryController: limit above scorpio.entity.max-limit
        ("stellio", 100, 403, "TooManyResults"),  # Stellio, shared/queryparameter/PaginationQuery.kt
    ],
)
def test_a_larger_page_than_the_maximum_is_refused_as_a_problem(
    flavour: str, largest: int, status: int, error: str
) -> None:
    network = stocked(flavour, 1)
    assert network.list(type="Device", limit=str(largest)).status_code == 200
    refused = network.list(type="Device", limit=str(largest + 1))
    # RFC 7807 as of clause 6.3.3: a type, a title, a detail.
    assert (refused.status_code, refused.json()["type"]) == (status, ETSI + error)
    assert set(refused.json()) == {"type", "title", "detail"}
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(("flavour", "local"), [("orion-ld", "local"), ("scorpio", "localOnly")])
def test_a_query_without_a_selector_is_too_broad_unless_it_is_local(flavour: str, local: str) -> None:
    # Orion-LD, orionldGetEntities.cpp ("too broad query"); Scorpio, QueryController; clause 5.7.2.4
    network = stocked(flavour, 2)
    assert network.list().status_code == 400
    assert "oo broad query" in network.list().json()["title"]
    assert len(network.ids(**{local: "true"})) == 2


def test_headers_hold_the_count_and_the_next_page() -> None:
    # Clause 6.3.10 and 6.3.13
    network = stocked("orion-ld", 25)
    first = network.list(type="Device", count="true")
    assert first.headers["ngsild-results-count"] == "25"
    assert 'offset=20>;rel="next"' in first.headers["link"]
    last = network.list(type="Device", offset="20")
    assert 'rel="next"' not in last.headers["link"]
    assert "ngsild-results-count" not in last.headers


def test_limit_0_counts_and_needs_count() -> None:
    # Clause 6.3.13: limit=0 only together with count=true
    network = stocked("stellio", 3)
    counted = network.list(type="Device", limit="0", count="true")
    assert (counted.json(), counted.headers["ngsild-results-count"]) == ([], "3")
    assert network.list(type="Device", limit="0").status_code == 400


def test_the_brokers_own_times_come_only_when_asked_for() -> None:
    # Clause 6.3.11, options=sysAttrs; entities and attributes have them (clause 4.8)
    network = LinkedDataNetwork("scorpio")
    network.face.load([device(1)], at="2026-01-01T10:00:00Z")
    (shown,) = network.list(type="Device", options="sysAttrs").json()
    assert shown["createdAt"] == shown["level"]["modifiedAt"] == "2026-01-01T10:00:00.000Z"
    (plain,) = network.list(type="Device").json()
    assert plain == device(1)


def test_old_orion_ld_finds_nothing_by_its_own_times() -> None:
    # Orion-LD issue 1458: q=modifiedAt answered [] up to 1.4.0
    condition = "modifiedAt>=1970-01-01T00:00:00Z"
    assert stocked("orion-ld-1.4", 2).ids(type="Device", q=condition) == []
    assert len(stocked("orion-ld", 2).ids(type="Device", q=condition)) == 2


def test_changed_since_selects_what_was_modified_from_then_on() -> None:
    network = LinkedDataNetwork("stellio")
    network.face.load([device(1)], at="2026-01-01T10:00:00Z")
    network.face.load([device(2)], at="2026-01-01T11:00:00Z")
    assert network.ids(type="Device", q="modifiedAt>=2026-01-01T11:00:00Z") == ["urn:ngsi-ld:Device:00002"]


def test_scopes_are_selected_by_level_and_by_tree() -> None:
    # Clause 4.19: + is one level, /# the scope and everything below
    network = LinkedDataNetwork("orion-ld")
    network.face.load([device(1, scope="/Madrid"), device(2, scope=["/Madrid/Gardens", "/Public"]), device(3)])
    assert [one[-1] for one in network.ids(scopeQ="/Madrid/#")] == ["1", "2"]
    assert [one[-1] for one in network.ids(scopeQ="/Madrid/+")] == ["2"]
    assert [one[-1] for one in network.ids(scopeQ="/Public")] == ["2"]
    assert [one[-1] for one in network.ids(scopeQ="/Madrid,/Public")] == ["1", "2"]
    assert [one[-1] for one in network.ids(scopeQ="/Madrid/+;/Public")] == ["2"]
    assert network.ids(scopeQ="/Madrid;/Public") == []


def test_scorpio_pages_through_ids_that_were_frozen() -> None:
    # Clause 5.14; Scorpio, QueryController: parameter entityMap, header NGSILD-EntityMap
    network = stocked("scorpio", 5)
    first = network.list(type="Device", entityMap="true", limit="2", count="true")
    name = {"ngsild-entitymap": first.headers["ngsild-entitymap"]}
    network.face.remove("urn:ngsi-ld:Device:00000")
    network.face.load([device(9)])
    second = network.ask(
        "GET", "/ngsi-ld/v1/entities", headers=name, type="Device", limit="2", offset="2", count="true"
    )
    assert [one["id"][-1] for one in second.json()] == ["2", "3"]
    assert second.headers["ngsild-results-count"] == "5"


def test_an_expired_map_is_replaced_by_a_new_one() -> None:
    # Clause 5.7.1.4: an EntityMap that is not found is created anew
    network = stocked("scorpio", 1)
    name = network.list(type="Device", entityMap="true").headers["ngsild-entitymap"]
    network.face.forget_maps()
    again = network.ask("GET", "/ngsi-ld/v1/entities", headers={"ngsild-entitymap": name}, type="Device")
    assert again.headers["ngsild-entitymap"] != name


def test_others_know_no_entity_maps() -> None:
    # Stellio: not implemented; Orion-LD: behind an experimental flag
    for flavour in ("stellio", "orion-ld"):
        assert "ngsild-entitymap" not in stocked(flavour, 1).list(type="Device", entityMap="true").headers


def test_names_are_iris_without_the_clients_context() -> None:
    # Clause 5.5.7: a broker compacts with the context of the request's Link header
    network = stocked("orion-ld", 1)
    with httpx.Client(transport=network.transport(), base_url="http://broker") as client:
        (entity,) = client.get("/ngsi-ld/v1/entities", params={"type": "Device"}).json()
    assert entity["type"] == "https://example.org/vocabulary/Device"
    assert "https://example.org/vocabulary/level" in entity


def test_types_are_listed_each_once_and_without_counts() -> None:
    # Clause 5.2.24, EntityTypeList
    network = LinkedDataNetwork("stellio")
    network.face.load([device(1, ["Sensor", "Device"]), device(2)])
    answer = network.ask("GET", "/ngsi-ld/v1/types").json()
    assert (answer["type"], answer["typeList"]) == ("EntityTypeList", ["Device", "Sensor"])


def test_tenants_are_apart() -> None:
    # Clause 4.14, header NGSILD-Tenant; Orion-LD takes Fiware-Service too
    network = LinkedDataNetwork("orion-ld")
    network.face.load([device(1)], tenant="city")
    for header in ("NGSILD-Tenant", "Fiware-Service"):
        answer = network.ask("GET", "/ngsi-ld/v1/entities", headers={header: "city"}, type="Device")
        assert len(answer.json()) == 1
    assert network.ids(type="Device") == []
    unknown = network.ask("GET", "/ngsi-ld/v1/entities", headers={"NGSILD-Tenant": "nowhere"}, type="Device")
    assert (unknown.status_code, unknown.json()["type"]) == (404, ETSI + "NonexistentTenant")


def test_scorpio_makes_a_tenant_when_it_is_first_asked_for() -> None:
    # Scorpio: one database per tenant, made on demand; Stellio's tenants stand in its configuration
    assert (
        LinkedDataNetwork("scorpio")
        .ask("GET", "/ngsi-ld/v1/types", headers={"NGSILD-Tenant": "new"})
        .json()["typeList"]
        == []
    )
    assert (
        LinkedDataNetwork("stellio").ask("GET", "/ngsi-ld/v1/types", headers={"NGSILD-Tenant": "new"}).status_code
        == 404
    )


def test_the_simplified_form_has_values_alone() -> None:
    # Clause 4.5.4; several instances of an attribute stand under "dataset" (4.5.5)
    network = LinkedDataNetwork("orion-ld")
    gps = {"type": "Property", "value": 2, "datasetId": "urn:gps"}
    owner = {"type": "Relationship", "object": "urn:a:1"}
    network.face.load([device(1, owner=owner, speed=[{"type": "Property", "value": 1}, gps])])
    assert network.list(type="Device", options="keyValues").json() == [
        {
            "id": "urn:ngsi-ld:Device:00001",
            "type": "Device",
            "level": 1,
            "owner": "urn:a:1",
            "speed": {"dataset": {"@none": 1, "urn:gps": 2}},
        }
    ]
    (both,) = network.list(type="Device", options="keyValues,sysAttrs").json()
    assert {"createdAt", "modifiedAt"} < set(both)


@pytest.mark.parametrize(
    ("flavour", "lists", "subscriptions"),
    [
        # Measured on Orion, which Orion-LD is built on: lists show nothing, subscriptions say what is wrong.
        ("orion-ld", 200, 500),
        # Not seen: taken to be what a failing database is to a web framework.
        ("scorpio", 500, 500),
        ("stellio", 500, 500),
    ],
)
def test_a_database_that_is_gone_shows_where_it_does(flavour: str, lists: int, subscriptions: int) -> None:
    network = stocked(flavour, 2)
    network.broker.faults.database_gone = True
    assert network.list(type="Device", count="true").status_code == lists
    assert network.ask("GET", "/ngsi-ld/v1/types").status_code == lists
    assert network.ask("GET", "/ngsi-ld/v1/subscriptions", limit="1").status_code == subscriptions


def test_stellio_orders_by_id_and_the_others_by_creation() -> None:
    # Orion-LD since issue 1573; Scorpio by its entity map; Stellio by id
    for flavour, expected in (("orion-ld", ["2", "1"]), ("scorpio", ["2", "1"]), ("stellio", ["1", "2"])):
        network = LinkedDataNetwork(flavour)
        network.face.load([device(2), device(1)])
        assert [one[-1] for one in network.ids(type="Device")] == expected


def test_an_entity_is_created_changed_shown_and_deleted() -> None:
    # Clauses 6.4.3.1 and 6.5.3
    network = LinkedDataNetwork("scorpio")
    path = "/ngsi-ld/v1/entities/urn:ngsi-ld:Device:00001"
    assert network.ask("POST", "/ngsi-ld/v1/entities", device(1)).status_code == 201
    assert network.ask("POST", "/ngsi-ld/v1/entities", device(1)).status_code == 409
    assert network.ask("PATCH", path, {"level": {"type": "Property", "value": 7}}).status_code == 204
    assert network.ask("GET", path).json()["level"]["value"] == 7
    assert network.ask("DELETE", path).status_code == 204
    assert network.ask("GET", path).json()["type"] == ETSI + "ResourceNotFound"


def test_the_test_broker_speaks_it_over_http() -> None:
    with TestBroker() as broker:
        broker.speak_linked_data("orion-ld").load([device(1)])
        assert "orionld version" in httpx.get(f"{broker.url}/version").json()
        shown = httpx.get(f"{broker.url}/ngsi-ld/v1/entities", params={"local": "true"}).json()
        assert [one["id"] for one in shown] == ["urn:ngsi-ld:Device:00001"]


def history(network: LinkedDataNetwork, **given: str) -> httpx.Response:
    between = {"timerel": "between", "timeAt": "2026-01-01T10:00:00Z", "endTimeAt": "2026-01-01T11:00:00Z"}
    asked = {"type": "Device", "timeproperty": "modifiedAt", **between, **given}
    answer: httpx.Response = network.ask("GET", "/ngsi-ld/v1/temporal/entities", **asked)
    return answer


def changed(flavour: str | Flavour) -> LinkedDataNetwork:
    network = LinkedDataNetwork(flavour)
    for minute in (0, 10, 20, 30):
        level = {"level": {"type": "Property", "value": minute}}
        network.face.load([{**device(1), **level}], at=f"2026-01-01T10:{minute:02}:00Z")
    return network


@pytest.mark.parametrize("flavour", ["scorpio", "stellio"])
def test_history_lists_the_instances_of_each_attribute(flavour: str) -> None:
    # Clause 4.5.7; the face leaves out both ends, the strictest reading of `between` (clause 4.11)
    answer = history(changed(flavour))
    (entity,) = answer.json()
    assert answer.status_code == 200
    assert [(one["value"], one["modifiedAt"][11:16]) for one in entity["level"]] == [
        (10, "10:10"),
        (20, "10:20"),
        (30, "10:30"),
    ]


@pytest.mark.parametrize("flavour", ["orion-ld", "orion-ld-1.4"])
def test_orion_ld_alone_shows_no_history(flavour: str) -> None:
    # Orion-LD keeps it in TimescaleDB and leaves the reading of it to Mintaka
    answer = history(changed(flavour))
    assert (answer.status_code, answer.json()["type"]) == (501, ETSI + "OperationNotSupported")


def test_long_history_comes_in_part_with_its_range() -> None:
    # Clause 6.3.10: 206, and without lastN in the order of time, from timeAt to the latest time in the answer
    answer = history(changed(replace(FLAVOURS["stellio"], history_instances=2)))
    assert answer.status_code == 206
    assert answer.headers["content-range"] == "date-time 2026-01-01T10:00:00.000Z-2026-01-01T10:20:00.000Z/*"
    assert [one["value"] for one in answer.json()[0]["level"]] == [10, 20]


def test_the_last_instances_come_backwards_and_as_a_part() -> None:
    # Clause 6.3.10: with lastN from the end to the earliest time, and its number; whether 206 although nothing is
    # left out differs (ETSI's own test suite expects both)
    answer = history(changed("scorpio"), lastN="1", timerel="before", timeAt="2026-01-01T10:25:00Z")
    assert answer.status_code == 206
    assert answer.headers["content-range"] == "date-time 2026-01-01T10:25:00.000Z-2026-01-01T10:20:00.000Z/1"
    assert [one["value"] for one in answer.json()[0]["level"]] == [20]


def test_mintaka_pages_by_anchors() -> None:
    # Mintaka, README, pagination: pageSize, pageAnchor, Next-Page
    network = LinkedDataNetwork(replace(FLAVOURS["orion-ld"], history=True))
    network.face.load((device(number) for number in range(3)), at="2026-01-01T10:30:00Z")
    first = history(network, pageSize="2")
    assert [one["id"][-1] for one in first.json()] == ["0", "1"]
    assert first.headers["next-page"] == "urn:ngsi-ld:Device:00002"
    last = history(network, pageSize="2", pageAnchor=first.headers["next-page"])
    assert [one["id"][-1] for one in last.json()] == ["2"]
    assert "next-page" not in last.headers
