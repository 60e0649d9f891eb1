"""A new publication on the page: what a source has, the proposed file, and what it would send."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.page_browser import Browser  # noqa: E402
from contexture.operations.actions.proposed_publication import load_text  # noqa: E402
from contexture.publications import NgsiPublication, SdmxPublication  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_sandbox.context_broker import SeedEntity, TestBroker  # noqa: E402
from contexture_sandbox.registry import TestRegistry, seed_message  # noqa: E402

ATTACK = '"><script>alert(1)</script>'
STATIONS = [
    {
        "id": f"station{number}",
        "type": "BikeStation",
        "bikes": {"type": "Number", "value": number},
        "status": {"type": "Text", "value": "closed" if number % 4 else "working"},
    }
    for number in range(1, 25)
]
CHOSEN = {"connection": "city", "kind": "ngsi", "service": "vehicles", "schedule": "@hourly"}


@pytest.fixture(scope="module")
def broker() -> Iterator[TestBroker]:
    with TestBroker() as running:
        running.load([SeedEntity("vehicles", "/transport", each) for each in STATIONS])
        running.load([SeedEntity("vehicles", "/cars", {"id": "car1", "type": "Car"})])
        yield running


@pytest.fixture(scope="module")
def registry() -> Iterator[TestRegistry]:
    with TestRegistry() as running:
        running.submit(seed_message(30))
        yield running


@pytest.fixture
def city(browser: Browser, broker: TestBroker, set_connection: Any) -> Browser:
    address, _, port = broker.url.removeprefix("http://").partition(":")
    set_connection("city", conn_type="http", host=address, port=int(port))
    set_connection("city_kafka", conn_type="kafka", extra={"bootstrap.servers": "127.0.0.1:9"})
    return browser


@pytest.fixture
def codes(browser: Browser, registry: TestRegistry, set_connection: Any) -> Browser:
    set_connection("codes", conn_type="contexture_sdmx", host=registry.url)
    return browser


def file_in(text: str) -> str:
    """The file that a page shows."""
    (found,) = re.findall(r"<textarea[^>]*>(.*?)</textarea>", text, re.DOTALL)
    return html.unescape(found)


def test_the_connections_that_may_be_tested_are_offered_and_nothing_is_asked(city: Browser) -> None:
    city.airflow.connections = {"stored": "contexture_ngsi", "a_bucket": "aws", "stored_kafka": "contexture_kafka"}
    text = city.get("new").text
    assert re.findall(r'<option value="(\w+)">', text) == ["city", "stored"]
    assert "data-load" not in text
    chosen = city.get("new", connection="city").text
    assert 'data-load="/contexture/new/survey?connection=city"' in chosen


def test_the_overview_leads_there_only_those_who_may_test_connections(browser: Browser) -> None:
    assert 'href="/contexture/new"' in browser.get("").text
    assert 'href="/contexture/new"' not in browser.get("", "eve").text


@pytest.mark.parametrize("page", ["new", "new/survey", "new/proposal", "new/proposal/file"])
def test_no_other_user_asks_a_source(city: Browser, page: str) -> None:
    answer = city.get(page, "eve", connection="city")
    assert (answer.status_code, "you may not test connections" in answer.text) == (403, True)
    assert city.get(page, None, connection="city").status_code == 303


def test_a_broker_is_asked_for_its_services_and_then_for_paths_and_types(city: Browser) -> None:
    services = city.get("new/survey", connection="city").text
    assert "<code>the default one</code> with 0 entities" in services
    known = city.get("new/survey", connection="city", kind="ngsi").text
    assert 'name="service" type="text" maxlength="300" autocomplete="off" list="services" value=""' in known
    text = city.get("new/survey", connection="city", kind="ngsi", service="Vehicles").text
    assert "Entities of service vehicles" in text
    assert "25 entities counted." in text
    assert '<code>/transport</code> <span class="soft">24</span>' in text
    assert '<code>Car</code> <span class="soft">1</span>' in text
    assert 'list="clusters" autocomplete="off" value="city_kafka"' in text
    assert "station1" not in text


def test_the_services_of_publications_that_the_visitor_may_see_are_known(home: Home, city: Browser) -> None:
    folder = Path(home.root).parent / "publications"
    text = (folder / "vehicles.yaml").read_text()
    (folder / "vehicles.yaml").write_text(text.replace("context_broker", "city"))
    assert "<code>vehicles</code> with 25 entities" in city.get("new/survey", connection="city").text
    hidden = city.get("new/survey", "tom", connection="city", kind="ngsi").text
    assert "the default one" in hidden
    assert "vehicles" not in hidden


def test_a_file_is_proposed_with_its_records_and_nothing_is_written(home: Home, city: Browser) -> None:
    folder = Path(home.root).parent / "publications"
    before = sorted(each.name for each in folder.iterdir())
    page = city.get("new/proposal", **CHOSEN, type="BikeStation").text
    assert 'data-load="/contexture/new/proposal/file?connection=city&amp;kind=ngsi&amp;service=vehicles' in page
    text = city.get("new/proposal/file", **CHOSEN, type="BikeStation", kafka="city_kafka", require="true").text
    file = file_in(text)
    publication = load_text("bike-station", file).publication
    assert isinstance(publication, NgsiPublication)
    assert (publication.source.service, publication.source.types) == ("vehicles", ("BikeStation",))
    assert (publication.publish.connection, publication.schedule) == ("city_kafka", "@hourly")
    assert publication.quality.required_attributes == ("bikes", "status")
    assert publication.quality.ranges["bikes"].model_dump() == {"minimum": 0, "maximum": 50}
    assert "It selects 24 entities now." in text
    assert "24 sampled entities become 24 records in 1 topic." in text
    assert "The page writes no file" in text
    assert "contexture check bike-station.yaml" in text
    assert sorted(each.name for each in folder.iterdir()) == before
    assert list(Path(home.root).iterdir()) == []


def test_values_of_entities_are_only_for_users_who_may_act_on_all_publications(city: Browser) -> None:
    chosen = {**CHOSEN, "type": "BikeStation"}
    assert "allowed_values" in file_in(city.get("new/proposal/file", **chosen).text)
    text = city.get("new/proposal/file", "tom", **chosen).text
    file = file_in(text)
    assert "required_attributes" in file
    assert not [key for key in ("ranges", "allowed_values", "closed", "working") if key in text]
    assert "Rules with values of entities are left out" in text
    assert load_text("bike-station", file).publication is not None


def test_topics_may_follow_the_entities(city: Browser) -> None:
    text = city.get("new/proposal/file", **CHOSEN, path="/cars", naming="dm-by-entity", name="cars").text
    assert "  data_model: dm-by-entity\n" in file_in(text)
    assert 'service_path: ["/cars"]' in file_in(text)
    assert "vehiclesxffffx002fcarsxffffcar1xffffCar" in text


def test_a_registry_is_proposed_by_agencies_and_classes(codes: Browser, registry: TestRegistry) -> None:
    text = codes.get("new/survey", connection="codes").text
    assert "Agencies" in text
    agency = re.findall(r'name="agency" value="([^"]+)"', text)[0]
    class_ = re.findall(r'name="class" value="([^"]+)"', text)[0]
    chosen = {"connection": "codes", "kind": "sdmx", "agency": agency, "class": class_, "name": "codes"}
    found = codes.get("new/proposal/file", **chosen).text
    publication = load_text("codes", file_in(found)).publication
    assert isinstance(publication, SdmxPublication)
    assert publication.source.select == (f"{class_}={agency}:*(*)",)
    assert "structures are selected, for 1 topic" in found
    assert "contexture resync codes --mode full" in found


@pytest.mark.parametrize(
    ("chosen", "problem"),
    [
        ({"connection": "none"}, "there is no Airflow connection"),
        ({"connection": "city_kafka"}, "which is not the type of a broker or a registry"),
        ({"connection": "city", "kind": "ngsi", "service": "cit"}, "has no entities"),
        ({"connection": "away", "kind": "ngsi", "service": ""}, "cannot be reached"),
    ],
)
def test_why_nothing_can_be_shown_is_on_the_page(
    city: Browser, set_connection: Any, chosen: dict[str, str], problem: str
) -> None:
    set_connection("away", conn_type="http", host="127.0.0.1", port=9)
    answer = city.get("new/survey", **chosen)
    assert (answer.status_code, problem in answer.text) == (200, True), answer.text


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": "vehicles"}, "there is a publication &#39;vehicles&#39; already"),
        ({"name": "../vehicles"}, "is not a name of a publication"),
        ({"schedule": "every day"}, "a schedule is five cron fields"),
        ({"type": "Tram"}, "no entity is selected"),
        ({"kind": ""}, "kind"),
    ],
)
def test_what_is_wrong_with_the_choice_is_on_the_page(city: Browser, changes: dict[str, str], problem: str) -> None:
    answer = city.get("new/proposal/file", **{**CHOSEN, **changes})
    assert problem in answer.text


def test_a_topic_that_kafka_refuses_is_shown_with_its_place(city: Browser) -> None:
    text = city.get("new/proposal/file", **CHOSEN, topics="my topic").text
    assert "<code>topics.topics[0]</code>: &#39;my topic&#39; is not a topic name" in text


def test_names_of_a_source_stay_text(browser: Browser, set_connection: Any) -> None:
    with TestBroker() as hostile:
        hostile.load([SeedEntity("city", "/a", {"id": "a", "type": f"T{ATTACK}".replace('"', "").replace(">", "")})])
        address, _, port = hostile.url.removeprefix("http://").partition(":")
        set_connection("hostile", conn_type="http", host=address, port=int(port))
        chosen = {"connection": "hostile", "kind": "ngsi", "service": "city"}
        answers = [
            browser.get("new/survey", **chosen),
            browser.get("new/proposal/file", **chosen, name="hostile"),
            browser.get("new/proposal", **chosen, name=ATTACK),
            browser.get("new/proposal/file", **chosen, name=ATTACK),
            browser.get("new", connection=ATTACK),
        ]
    assert [each.status_code for each in answers] == [200, 200, 200, 200, 422]
    assert not [each.text for each in answers if "<script>alert" in each.text or "<scriptalert" in each.text]


def test_a_source_is_asked_only_while_a_call_is_free(city: Browser) -> None:
    calls = city.installation.outside_calls
    with calls, calls:
        for page in ("new/survey", "new/proposal/file"):
            assert "other users of the page are waiting" in city.get(page, **CHOSEN).text
    assert "other users of the page are waiting" not in city.get("new/survey", **CHOSEN).text


def test_the_file_is_downloaded_as_it_was_shown(browser: Browser) -> None:
    answer = browser.post("new/file", name="bikes", text="name: bikes\r\nschedule: none\r\n")
    assert (answer.status_code, answer.text) == (200, "name: bikes\nschedule: none\n")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''bikes.yaml"
    assert answer.headers["content-type"] == "application/yaml"
    assert browser.post("new/file", name="../bikes", text="").status_code == 422
    assert browser.post("new/file", name="bikes", headers={"origin": "https://evil.example"}).status_code == 403
    assert browser.post("new/file", None, name="bikes", text="").status_code == 303


PROPERTIES = """bootstrap.servers=broker-1:9092
topic=structures
format=Fusion-JSON
sasl.mechanism=PLAIN
security.protocol=SASL_SSL
sasl.username=fmr
sasl.password=hush-1
buffer.memory=33554432
enable.auto.commit=true
"""


def test_the_properties_of_a_registry_s_producer_become_a_publication(browser: Browser) -> None:
    assert "Paste the properties" in browser.get("new/fmr").text
    form = {"properties": PROPERTIES.replace("\n", "\r\n"), "name": "codes", "registry": "https://fmr.example/FMR"}
    text = browser.post("new/fmr", **form).text
    publication = load_text("codes", file_in(text)).publication
    assert isinstance(publication, SdmxPublication)
    assert publication.source.media_type == "application/vnd.fusion.json"
    assert publication.topics.topics == ("structures",)
    assert "<code>buffer.memory</code>" in text
    assert "airflow connections add kafka_default" in text
    assert "hush" not in text


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"properties": "topic=structures"}, 'role="alert"'),
        ({"properties": PROPERTIES, "name": "../x"}, "is not a name of a publication"),
        ({"properties": "bootstrap.servers=a:1\\u00"}, 'role="alert"'),
    ],
)
def test_properties_that_make_no_publication_say_why(browser: Browser, form: dict[str, str], problem: str) -> None:
    answer = browser.post("new/fmr", **form)
    assert (answer.status_code, problem in answer.text) == (200, True)


def test_an_import_is_for_those_who_may_test_connections_from_a_page_of_ours(browser: Browser) -> None:
    assert browser.get("new/fmr", "eve").status_code == 403
    assert browser.post("new/fmr", "eve", properties=PROPERTIES).status_code == 403
    assert browser.post("new/fmr", properties=PROPERTIES, headers={"origin": "https://evil.example"}).status_code == 403


def test_names_in_properties_stay_text(browser: Browser) -> None:
    text = browser.post("new/fmr", properties=f"bootstrap.servers=a:1\ntopic=t\n{ATTACK}=1", registry=ATTACK).text
    assert "<script>alert" not in text
