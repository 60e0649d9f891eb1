"""The NGSI-LD client against a test broker of each kind, without a network."""

from __future__ import annotations

import json
from collections.abc import Iterable

import httpx
import pytest

from builders.linked_data import LinkedDataNetwork, device
from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.broker import EntityPage, Flavour
from contexture.sources.ngsi.ngsi_ld import NgsiLdClient
from contexture.sources.ngsi.query import EntityQuery

CONTEXT = "https://example.org/context.jsonld"
QUICK = RetryBudget(attempts=1, sleep=lambda _seconds: None)
CHANGED = EntityQuery(field="dateModified", since="2026-01-02T00:00:00Z")


def reader(network: LinkedDataNetwork, flavour: Flavour = "unknown", tenant: str = "") -> NgsiLdClient:
    return NgsiLdClient(
        BrokerConnection("http://broker:1026"),
        tenant,
        context=CONTEXT,
        flavour=flavour,
        budget=QUICK,
        transport=network.transport(),
    )


def ids(pages: Iterable[EntityPage]) -> list[str]:
    return [str(head.id) for page in pages for head in page.heads]


def stocked(flavour: str, count: int) -> LinkedDataNetwork:
    network = LinkedDataNetwork(flavour)
    network.face.load(device(number, "Device" if number % 3 else "Sensor") for number in range(count))
    return network


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("flavour", ["orion-ld", "scorpio", "stellio"])
def test_a_walk_gives_every_entity_of_every_type_once(flavour: Flavour, known: bool) -> None:
    network = stocked(flavour, 310)
    found = ids(reader(network, flavour if known else "unknown").scan(EntityQuery()))
    assert len(found) == len(set(found)) == 310


def test_counting_asks_for_no_entity() -> None:
    network = stocked("stellio", 310)
    assert reader(network, "stellio").count(EntityQuery()) == 310
    assert {request.url.params.get("limit") for request in network.asked[1:]} == {"0"}


def test_entities_come_as_the_brokers_own_bytes_with_what_is_known_of_them() -> None:
    network = LinkedDataNetwork("scorpio")
    network.face.load([device(1, ["Sensor", "Device"])], tenant="city", at="2026-01-01T10:00:00Z")
    (page,) = list(reader(network, tenant="city").scan(EntityQuery(types=("Sensor",))))
    (seen,) = page.heads
    assert (seen.path, seen.id, seen.type) == ("/", "urn:ngsi-ld:Device:00001", "Device,Sensor")
    assert seen.created == seen.modified == "2026-01-01T10:00:00.000Z"
    assert json.loads(page.entities[0])["level"]["value"] == 1


def test_the_context_and_the_tenant_are_sent_with_every_question() -> None:
    network = LinkedDataNetwork("scorpio")
    network.face.load([device(1)], tenant="city")
    ids(reader(network, tenant="city").scan(EntityQuery()))
    assert {request.headers["ngsild-tenant"] for request in network.asked} == {"city"}
    assert all(request.headers["link"].startswith(f"<{CONTEXT}>; rel=") for request in network.asked)


def test_a_broker_that_grants_smaller_pages_is_read_in_those() -> None:
    network = stocked("stellio", 310)
    found = ids(reader(network, "scorpio").scan(EntityQuery(types=("Device",))))
    assert len(found) == len(set(found)) == 206
    assert [request.url.params.get("limit") for request in network.asked[:3]] == ["1000", "1000", None]
    assert network.asked[3].url.params["limit"] == "30"


def test_an_entity_deleted_between_pages_hides_no_other() -> None:
    network = stocked("stellio", 300)
    gone: list[str] = []

    def remove(page: int) -> None:
        # Those read first vanish, and every later row moves up.
        for number in range((page - 1) * 3, page * 3):
            network.face.remove(f"urn:ngsi-ld:Device:{number:05}")
            gone.append(f"urn:ngsi-ld:Device:{number:05}")

    network.broker.faults.after_page = remove
    found = ids(reader(network, "stellio").scan(EntityQuery(types=("Device",), page_size=10)))
    stayed = {f"urn:ngsi-ld:Device:{number:05}" for number in range(300) if number % 3} - set(gone)
    assert gone
    assert stayed <= set(found)


def test_a_frozen_list_is_paged_through_though_entities_vanish() -> None:
    network = stocked("scorpio", 60)
    network.broker.faults.after_page = lambda page: network.face.remove(f"urn:ngsi-ld:Device:{3 * page + 1:05}")
    found = ids(reader(network, "scorpio").scan(EntityQuery(types=("Device",), page_size=10)))
    assert len(found) == len(set(found))
    assert {f"urn:ngsi-ld:Device:{number:05}" for number in range(60) if number % 3 == 2} <= set(found)
    pages = [request for request in network.asked if request.url.path.endswith("/entities")]
    assert len({request.headers["ngsild-entitymap"] for request in pages[1:]}) == 1


def test_a_walk_begins_anew_when_its_frozen_list_expires() -> None:
    network = stocked("scorpio", 60)
    network.broker.faults.after_page = lambda page: network.face.forget_maps() if page == 2 else None
    found = ids(reader(network, "scorpio").scan(EntityQuery(types=("Device",), page_size=10)))
    assert len(set(found)) == 40


def test_only_what_changed_is_read_where_the_broker_finds_it() -> None:
    network = LinkedDataNetwork("orion-ld")
    network.face.load([device(1)], at="2026-01-01T00:00:00Z")
    network.face.load([device(2)], at="2026-01-03T00:00:00Z")
    assert ids(reader(network, "orion-ld").scan(CHANGED)) == ["urn:ngsi-ld:Device:00002"]


def test_everything_is_read_where_the_broker_finds_nothing_by_time() -> None:
    network = LinkedDataNetwork("orion-ld-1.4")
    network.face.load([device(1)], at="2026-01-01T00:00:00Z")
    network.face.load([device(2)], at="2026-01-03T00:00:00Z")
    assert len(ids(reader(network, "orion-ld").scan(CHANGED))) == 2


def test_a_service_path_selects_scopes() -> None:
    network = LinkedDataNetwork("orion-ld")
    network.face.load([device(1, scope="/Madrid/Gardens"), device(2, scope="/Paris"), device(3)])
    assert ids(reader(network).scan(EntityQuery(service_path="/Madrid/#"))) == ["urn:ngsi-ld:Device:00001"]
    assert len(ids(reader(network).scan(EntityQuery(service_path="/#")))) == 3


def test_alternatives_of_the_user_stay_together_beside_the_time() -> None:
    network = stocked("orion-ld", 1)
    query = EntityQuery(q="level==1|level==2", types=("Sensor",), field="dateModified", since="2026-01-02T00:00:00Z")
    ids(reader(network, "orion-ld").scan(query))
    assert "(level==1|level==2);modifiedAt>=1970-01-01T00:00:00Z" in {
        request.url.params.get("q") for request in network.asked
    }


def test_geography_is_written_longitude_first() -> None:
    network = stocked("orion-ld", 1)
    reader(network).count(
        EntityQuery(types=("Sensor",), georel="near;maxDistance:1000", geometry="point", coords="40.4,-3.7")
    )
    asked = network.asked[-1].url.params
    assert (asked["georel"], asked["geometry"], asked["coordinates"]) == (
        "near;maxDistance==1000",
        "Point",
        "[-3.7,40.4]",
    )


def test_a_broker_that_shows_fewer_than_it_counts_is_not_believed() -> None:
    rows = [device(number) for number in range(3)]

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/types"):
            return httpx.Response(200, json={"typeList": ["Device"]})
        return httpx.Response(200, json=rows if request.url.params.get("offset") == "0" else [], headers=COUNTED)

    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=httpx.MockTransport(handle))
    # A read of everything is compared with the count; among changes nothing shows what was not met.
    assert len(set(ids(broker.scan(EntityQuery())))) == 3 < broker.count(EntityQuery())
    with pytest.raises(RetriableError, match="counts more changed entities than its pages show"):
        ids(broker.scan(EntityQuery(field="dateModified", since="2026-01-01T00:00:00.000Z")))


COUNTED = {"NGSILD-Results-Count": "5"}


@pytest.mark.parametrize("total", ["0", "12"])
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_one_empty_page_of_a_broker_that_lost_its_database_for_a_moment_ends_no_walk(lost: int, total: str) -> None:
    rows = [device(number) for number in range(12)]
    pages: list[int] = []

    def handle(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/entities"):
            return httpx.Response(200, json={"typeList": ["Device"]})
        start, limit = int(request.url.params["offset"]), int(request.url.params["limit"])
        pages.append(start)
        is_lost = len(pages) == lost
        shown = [] if is_lost else rows[start : start + limit]
        return httpx.Response(200, json=shown, headers={"NGSILD-Results-Count": total if is_lost else "12"})

    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=httpx.MockTransport(handle))
    assert len(set(ids(broker.scan(EntityQuery(page_size=5))))) == 12


@pytest.mark.parametrize("shown", [[3, 4], [0, 1, 2], []])
def test_a_page_of_a_frozen_list_that_is_not_whole_is_asked_for_again(shown: list[int]) -> None:
    """Cut short, the page before, or nothing at all: where the list is frozen, no overlap of pages shows the gap."""
    offsets: list[int] = []

    def handle(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/entities"):
            return httpx.Response(200, json={"typeList": ["Device"]})
        start, limit = int(request.url.params["offset"]), int(request.url.params["limit"])
        offsets.append(start)
        numbers = shown if offsets == [0, 3] else range(12)[start : start + limit]
        found = {"NGSILD-Results-Count": "12", "NGSILD-EntityMap": "urn:map:1"}
        return httpx.Response(200, json=[device(number) for number in numbers], headers=found)

    broker = NgsiLdClient(
        BrokerConnection("http://broker"), "", flavour="scorpio", budget=QUICK, transport=httpx.MockTransport(handle)
    )
    assert len(set(ids(broker.scan(EntityQuery(page_size=3))))) == 12
    assert offsets == [0, 3, 3, 6, 9, 11]


def test_another_page_size_shows_what_an_unstable_order_hid() -> None:
    """A broker whose ties fall otherwise on every page size."""
    names = [device(number) for number in range(6)]

    def handle(request: httpx.Request) -> httpx.Response:
        given = request.url.params
        start, limit = int(given["offset"]), int(given["limit"])
        shown = names if limit != 4 else [names[0], names[1], names[2], names[3], names[3], names[4]]
        return httpx.Response(200, json=shown[start : start + limit], headers={"NGSILD-Results-Count": "6"})

    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=httpx.MockTransport(handle))
    found = ids(broker.scan(EntityQuery(types=("Device",), page_size=4)))
    assert sorted(found) == [f"urn:ngsi-ld:Device:0000{number}" for number in range(6)]


def test_an_answer_without_a_count_names_the_proxy() -> None:
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, json=[]))
    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=transport)
    with pytest.raises(ConfigurationError, match="does not report how many"):
        broker.count(EntityQuery(types=("Device",)))


def test_what_is_no_broker_is_named() -> None:
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, text="<html>"))
    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=transport)
    with pytest.raises(ConfigurationError, match="does not respond with a list of types"):
        ids(broker.scan(EntityQuery()))


def test_a_broker_that_is_away_is_worth_another_try() -> None:
    transport = httpx.MockTransport(lambda _request: httpx.Response(503))
    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=transport)
    with pytest.raises(RetriableError):
        broker.probe()


def params(network: LinkedDataNetwork, path: str = "/ngsi-ld/v1/entities") -> list[dict[str, str]]:
    return [dict(request.url.params) for request in network.asked if request.url.path == path]


def test_an_entity_of_several_types_is_counted_and_met_once() -> None:
    network = LinkedDataNetwork("orion-ld")
    network.face.load([device(1, ["Sensor", "Device"]), device(2), device(3, "Sensor")])
    broker = reader(network, "orion-ld")
    assert broker.count(EntityQuery()) == 3
    assert [one[-1] for one in ids(broker.scan(EntityQuery()))] == ["1", "2", "3"]
    assert {given["type"] for given in params(network)} == {"Device,Sensor"}


def test_types_that_fill_an_address_are_asked_for_in_turn() -> None:
    network = LinkedDataNetwork("scorpio")
    names = [f"https://example.org/vocabulary/types/Kind{number}" for number in range(50)]
    network.face.load(device(number, name) for number, name in enumerate(names))
    assert len(ids(reader(network, "scorpio").scan(EntityQuery()))) == 50
    asked = [given["type"] for given in params(network)]
    # Each is asked for once more, from its last row on.
    assert [len(each.split(",")) for each in asked] == [17, 17, 17, 17, 16, 16]


def test_types_are_selected_by_a_pattern_that_the_broker_knows_nothing_of() -> None:
    """NGSI-LD has no typePattern: the list of types is asked for first (clause 5.7.5), and looked through here."""
    network = LinkedDataNetwork("stellio")
    network.face.load([device(1, "Car"), device(2, "Cart"), device(3, "Bus")])
    broker = reader(network, "stellio")
    assert [one[-1] for one in ids(broker.scan(EntityQuery(type_pattern="^Car")))] == ["1", "2"]
    assert broker.count(EntityQuery(type_pattern="^Train")) == 0
    assert {given["type"] for given in params(network)} == {"Car,Cart"}


def test_conditions_on_metadata_are_conditions_on_attributes_of_attributes() -> None:
    """NGSIv2's mq and NGSI-LD's q write them alike (clause 4.9, attribute paths)."""
    network = stocked("orion-ld", 1)
    reader(network).count(EntityQuery(types=("Sensor",), q="level>1|level<0", mq="level.accuracy>0.9"))
    assert params(network)[-1]["q"] == "(level>1|level<0);level.accuracy>0.9"


def test_several_scopes_are_selected_at_once() -> None:
    """Clause 4.19: a comma in scopeQ is an alternative."""
    network = LinkedDataNetwork("orion-ld")
    network.face.load([device(1, scope=["/Madrid/Gardens", "/Paris"]), device(2, scope="/Paris"), device(3)])
    found = ids(reader(network).scan(EntityQuery(service_path="/Madrid/#,/Paris")))
    assert [one[-1] for one in found] == ["1", "2"]


def test_who_is_there_is_asked_for_in_the_smallest_form() -> None:
    """Clause 4.5.4, the simplified representation (options=keyValues)."""
    network = stocked("scorpio", 4)
    (page,) = reader(network, "scorpio").scan(EntityQuery(identities_only=True))
    shown = json.loads(page.entities[0])
    assert set(shown) == {"id", "type", "level", "createdAt", "modifiedAt"}
    assert (shown["id"], shown["level"]) == ("urn:ngsi-ld:Device:00000", 0)
    assert {given["options"] for given in params(network)} == {"keyValues,sysAttrs"}


@pytest.mark.parametrize(
    ("flavour", "local"), [("orion-ld", {"local"}), ("scorpio", {"localOnly"}), ("stellio", set())]
)
def test_what_others_hold_is_not_asked_for(flavour: Flavour, local: set[str]) -> None:
    """Orion-LD takes local=true, Scorpio localOnly=true; of Stellio nothing like it is known."""
    network = stocked(flavour, 3)
    ids(reader(network, flavour).scan(EntityQuery()))
    reader(network, flavour).count(EntityQuery())
    assert all({"local", "localOnly"} & set(given) == local for given in params(network))


@pytest.mark.parametrize("flavour", ["orion-ld", "scorpio", "stellio"])
def test_a_broker_without_its_database_is_found_ill(flavour: Flavour) -> None:
    """Orion answers "none" and 200 to lists then, and 500 to subscriptions (measured); Orion-LD is built on it."""
    network = stocked(flavour, 3)
    network.broker.faults.database_gone = True
    with pytest.raises(RetriableError, match="responded with 500"):
        reader(network, flavour).probe()


def test_a_database_that_goes_away_during_a_walk_is_no_end_of_it() -> None:
    network = stocked("orion-ld", 60)

    def lose(page: int) -> None:
        network.broker.faults.database_gone = page >= 2

    network.broker.faults.after_page = lose
    with pytest.raises(RetriableError, match="responded with 500"):
        ids(reader(network, "orion-ld").scan(EntityQuery(types=("Device",), page_size=10)))


def test_a_tenant_that_the_broker_does_not_know_is_named() -> None:
    """Clause 5.5.3 and 6.3.3: 404 with the problem NonexistentTenant; Stellio's tenants are declared beforehand."""
    network = stocked("stellio", 1)
    with pytest.raises(ConfigurationError, match="has no such tenant") as raised:
        reader(network, "stellio", tenant="nowhere").count(EntityQuery(types=("Device",)))
    assert "source.service" in raised.value.next_step


def test_a_refusal_shows_the_name_of_its_problem_without_its_text() -> None:
    """Clause 6.3.3, RFC 7807: the types stand below https://uri.etsi.org/ngsi-ld/errors/."""
    problem = {"type": "https://uri.etsi.org/ngsi-ld/errors/BadRequestData", "title": "bad", "detail": "hunter2"}
    transport = httpx.MockTransport(lambda _request: httpx.Response(400, json=problem))
    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=transport)
    with pytest.raises(ConfigurationError, match="rejects the request \\(400 BadRequestData; type, ") as raised:
        broker.count(EntityQuery(types=("Device",)))
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (httpx.Response(404, text="<html>"), "the part before /ngsi-ld"),
        (httpx.Response(404, json={"type": "about:blank"}), "the part before /ngsi-ld"),
        (httpx.Response(403, json=[1]), "put valid credentials"),
        (httpx.Response(501, json={"type": "https://uri.etsi.org/ngsi-ld/errors/OperationNotSupported"}), "selection"),
    ],
)
def test_each_refusal_has_a_next_step(answer: httpx.Response, expected: str) -> None:
    transport = httpx.MockTransport(lambda _request: answer)
    broker = NgsiLdClient(BrokerConnection("http://broker"), "", budget=QUICK, transport=transport)
    with pytest.raises(ConfigurationError) as raised:
        broker.probe()
    assert expected in raised.value.next_step


def test_a_walk_is_described_without_what_is_secret() -> None:
    broker = reader(LinkedDataNetwork("stellio"), "stellio", tenant="city")
    query = EntityQuery(types=("Car", "Bus"), q="speed>50", field="dateModified", since="2026-01-02T00:00:00Z")
    assert (
        broker.describe(query)
        == "stellio /ngsi-ld/v1/entities type=Car,Bus q=speed>50;modifiedAt>=2026-01-02T00:00:00Z"
    )


def test_entities_are_selected_by_their_ids_and_by_a_pattern_of_them() -> None:
    network = stocked("stellio", 9)
    broker, wanted = reader(network, "stellio"), ("urn:ngsi-ld:Device:00001", "urn:ngsi-ld:Device:00003")
    assert sorted(ids(broker.scan(EntityQuery(ids=wanted)))) == list(wanted)
    assert ids(broker.scan(EntityQuery(id_pattern="00007$"))) == ["urn:ngsi-ld:Device:00007"]
