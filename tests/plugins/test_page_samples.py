"""Samples, topics that drift, quarantined values and the parts that the page loads after itself."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.landing import car, landing  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from builders.page_browser import Browser  # noqa: E402
from builders.page_installation import VEHICLES, page_installation  # noqa: E402
from builders.quarantines import refused  # noqa: E402
from builders.states import Held, state_table, write_files  # noqa: E402
from contexture.kafka import ClientSettings  # noqa: E402
from contexture.kafka.topics import (  # noqa: E402
    TopicDrift,
    TopicsPlan,
    change_for,
)
from contexture.monitoring import RunTables  # noqa: E402
from contexture.operations.status.detail import StepTime  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.state import StatePointer  # noqa: E402
from contexture_airflow.web import fragments  # noqa: E402

ATTACK = '"><script>alert(1)</script>'
STRUCTURES = """
name: structures
source: {kind: sdmx, connection: registry, select: ["*=CITY:*(*)"]}
topics: {naming: fixed, topics: [structures]}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    files = {"vehicles": VEHICLES["vehicles"] + "batches: {batch_size: 2}\n", "structures": STRUCTURES}
    storage = page_installation(tmp_path, monkeypatch, files)
    outbox(storage, publication(), 1, [records("a")])
    storage.publication("vehicles").state.commit(StatePointer(concluded_at=NOON, outbox="outbox1", sequence=1))
    return storage


@pytest.fixture
def browser(home: Home) -> Browser:
    return Browser("vehicles", "structures")


def test_samples_are_named_and_batched_as_a_run_would(home, browser):
    hostile = {**car(3, 30.0), "id": f"car{ATTACK}", "plate": {"type": "Text", "value": "secret-plate"}}
    landing(home, "vehicles", "run1", [car(1, 10.0), car(2, 20.0), hostile, b"{"])
    text = browser.get("publications/vehicles/samples").text
    assert "/4wheels car1 car" in text
    assert "vehiclesxffffx002f4wheelsxffffcar1xffffcar" in text
    assert "2 batches" in text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
    assert "secret-plate" not in text


def test_without_what_was_read_there_are_no_samples(browser):
    assert "nothing that was read is stored" in browser.get("publications/vehicles/samples").text
    assert "the target holds no structure" in browser.get("publications/structures/samples").text


def test_structures_are_shown_with_the_topics_they_would_go_to(home, browser):
    urn = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist={}(1.0)"
    held = [Held(urn.format(name)) for name in ("CITY:CL_A", "CITY:CL_B", "OTHER:CL_C", f"CITY:{ATTACK}")]
    state = home.publication("structures").state
    state.commit(write_files(state, state_table(held)))
    text = browser.get("publications/structures/samples").text
    assert "Where a run with today's file would publish the 4 structures" in text
    assert f"<code>{urn.format('CITY:CL_A')}</code></th><td><code>structures</code></td>" in text
    assert "OTHER:CL_C" not in text
    assert "<script>alert" not in text
    assert browser.get("publications/structures/samples", "ben").status_code == 404


def test_topics_are_compared_with_the_brokers_on_request(browser, monkeypatch):
    drift = TopicDrift("cars" + ATTACK, "partitions", wanted="1", found="3")
    plan = TopicsPlan(("missing" + ATTACK,), 4, (change_for(drift, keyed=True),))
    monkeypatch.setattr(
        fragments, "kafka_settings", lambda connection: ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:9"})
    )
    monkeypatch.setattr(fragments, "plan_topics", lambda *given, **more: plan)
    text = browser.get("publications/vehicles/topics/drift/plan", "eve").text
    assert "4 topics match the publication; 1 setting differs; 1 topic does not exist yet" in text
    assert "Kafka cannot remove partitions" in text
    assert text.count("&lt;script&gt;") == 2
    assert "<script>alert" not in text
    assert browser.get("publications/vehicles/topics/drift/plan", "ben").status_code == 404


def test_brokers_that_can_not_be_asked_are_a_problem_on_the_page(browser, monkeypatch):
    assert "there is no Airflow connection" in browser.get("publications/vehicles/topics/drift/plan").text
    calls = browser.installation.outside_calls
    with calls, calls:
        busy = browser.get("publications/vehicles/topics/drift/plan").text
    assert "other users of the page are waiting for brokers or sources now" in busy
    assert "there is no Airflow connection" in browser.get("publications/vehicles/topics/drift/plan").text


def test_quality_over_time_is_drawn_without_any_script_or_style(home, browser):
    from contexture.monitoring import RunTables

    store = RunTables.of_home(home.root)
    assert store is not None
    store.insert_run("vehicles", "run1", run_id="manual__1", mode="changes", sequence=1)
    store.set_run_succeeded("vehicles", "run1", outbox="outbox1")
    store.close()
    text = browser.get("publications/vehicles/quality").text
    assert text.count('<svg class="plot"') == 4
    assert "<title>run 1, " in text
    assert "style=" not in text
    assert browser.get("api/publications/vehicles/quality").json()["runs"][0]["outbox"] == "outbox1"
    assert browser.get("api/publications/vehicles/quarantine").json()["lines"] == []


FRAGMENTS = ("publications/vehicles/now", "publications/vehicles/topics/drift/plan", "trends?name=vehicles")


@pytest.mark.parametrize("path", FRAGMENTS)
def test_parts_that_are_loaded_later_are_for_those_who_see_the_publication(browser: Browser, path: str) -> None:
    answer = browser.get(path, "eve")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    assert (browser.get(path, "ben").status_code, browser.get(path, None).status_code) == (404, 303)
    assert browser.post(path).status_code == 405


def test_charts_of_one_page_of_publications_are_loaded_and_of_no_more(home: Home, browser: Browser) -> None:
    store = RunTables.of_home(home.root)
    assert store is not None
    store.insert_run("vehicles", "run1", run_id="manual__1", mode="changes", sequence=1)
    store.set_run_succeeded("vehicles", "run1", outbox="outbox1")
    store.close()
    [address] = re.findall('data-load="/contexture/(trends[^"]*)"', browser.get("").text)
    assert address == "trends?name=structures&amp;name=vehicles"
    text = browser.get(address.replace("&amp;", "&")).text
    assert re.findall('id="([^"]*)"', text) == [
        "records-structures",
        "quarantined-structures",
        "records-vehicles",
        "quarantined-vehicles",
    ]
    assert re.findall("<title>[^<]*, (succeeded: [^<]*)</title>", text) == ["succeeded: 1", "succeeded: 0"]
    assert browser.get("trends?" + "&".join(f"name=n{number}" for number in range(51))).status_code == 422


def test_what_runs_now_is_loaded_again_soon_and_what_rests_later(home: Home, browser: Browser) -> None:
    resting = browser.get("publications/vehicles/now").text
    assert 'id="now"' in resting
    assert 'data-load="/contexture/publications/vehicles/now" data-every="15"' in resting
    assert "Nothing runs now. The next run starts at 2026-03-01 12:05:00 UTC." in resting
    store = RunTables.of_home(home.root)
    assert store is not None
    store.insert_run("vehicles", "run2", run_id=f"manual__{ATTACK}", mode="full", sequence=2)
    store.close()
    browser.airflow.active.add("vehicles")
    browser.airflow.started["vehicles"] = (StepTime("stage", "running", None, None, NOON - timedelta(seconds=75)),)
    text = browser.get("publications/vehicles/now").text
    assert 'data-every="2"' in text
    assert "<strong>stage</strong> for 1 min." in text
    assert "<script>alert" not in text
    found = browser.get("api/publications/vehicles/progress", "eve").json()
    assert (found["active"], found["task"]["task"], found["read"]["done"]) == (True, "stage", 0)
    assert browser.get("api/publications/vehicles/progress", "ben").status_code == 404


def test_a_page_asks_no_broker(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*given: object, **more: object) -> TopicsPlan:
        raise AssertionError("a page waits for the brokers")

    monkeypatch.setattr(fragments, "plan_topics", ask)
    text = browser.get("publications/vehicles/topics/drift").text
    assert 'data-load="/contexture/publications/vehicles/topics/drift/plan"' in text


@pytest.fixture
def refusing(home: Home, browser: Browser) -> Browser:
    body = b'{"id": "car0", "plate": {"type": "Text", "value": "secret-plate"}}'
    refused(home, "outbox1", {"datetime": 1, "number-string": 2}, body=body, message="'plate' breaks {rule}" + ATTACK)
    return browser


def test_a_refused_value_is_shown_to_who_may_act_and_its_reading_is_logged(
    refusing: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    listed = refusing.get("publications/vehicles/quarantine").text
    address = "publications/vehicles/quarantine/outbox1/1"
    assert f'href="/contexture/{address}"' in listed
    assert "secret-plate" not in listed
    with caplog.at_level("INFO", "contexture_airflow.web.pages"):
        text = refusing.get(address).text
    assert "secret-plate" in text
    assert "<script>alert" not in text
    assert "'ana' read event 1 in the quarantine of vehicles, outbox outbox1" in caplog.text
    assert "secret-plate" not in caplog.text


def test_a_refused_value_is_kept_from_who_may_only_read(refusing: Browser) -> None:
    assert "quarantine/outbox1/" not in refusing.get("publications/vehicles/quarantine", "eve").text
    for user, status in (("eve", 403), ("ben", 404), (None, 303)):
        answer = refusing.get("publications/vehicles/quarantine/outbox1/1", user)
        assert (answer.status_code, "secret-plate" in answer.text) == (status, False)


@pytest.mark.parametrize("path", ["outbox1/9", "outbox9/1", "%2e%2e/1", "..%2foutbox1/1"])
def test_a_value_that_is_not_stored_is_not_found(refusing: Browser, path: str) -> None:
    assert refusing.get(f"publications/vehicles/quarantine/{path}").status_code == 404


def test_the_quarantine_is_filtered_by_rule_and_text(refusing: Browser) -> None:
    def shown(**query: str) -> list[str]:
        text = refusing.get("publications/vehicles/quarantine", **query).text
        return re.findall(r"<code>(/4wheels car\d car)</code>", text)

    assert shown() == ["/4wheels car0 car", "/4wheels car1 car", "/4wheels car0 car"]
    assert shown(rule="datetime") == ["/4wheels car0 car"]
    assert shown(text="CAR1") == ["/4wheels car1 car"]
    assert shown(text=" car1 ", rule="datetime") == []
    found = refusing.get("api/publications/vehicles/quarantine", "eve", text="car1").json()
    assert [rule["samples"][0][0] for line in found["lines"] for rule in line["rules"]] == ["/4wheels car1 car"]
    nothing = refusing.get("publications/vehicles/quarantine", text=ATTACK + "none").text
    assert "Nothing in quarantine matches the filters." in nothing
    assert "<script>alert" not in nothing
    assert refusing.get("publications/vehicles/quarantine", rule="r" * 201).status_code == 422
