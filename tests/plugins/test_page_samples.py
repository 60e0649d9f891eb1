"""How names and batches come about, and how topics drift, on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.landing import car, landing  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from builders.page_browser import Browser  # noqa: E402
from builders.states import Held, state_table, write_files  # noqa: E402
from contexture.kafka import ClientSettings  # noqa: E402
from contexture.kafka.topics import (  # noqa: E402
    TopicDrift,
    TopicsPlan,
    change_for,
)
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.state import StatePointer  # noqa: E402
from contexture_airflow.web import fragments  # noqa: E402

ATTACK = '"><script>alert(1)</script>'
FILE = """
name: vehicles
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}
batches: {batch_size: 2}
"""
STRUCTURES = """
name: structures
source: {kind: sdmx, connection: registry, select: ["*=CITY:*(*)"]}
topics: {naming: fixed, topics: [structures]}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "publications").mkdir()
    (tmp_path / "publications" / "vehicles.yaml").write_text(FILE)
    (tmp_path / "publications" / "structures.yaml").write_text(STRUCTURES)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    storage = Home(str(tmp_path / "home"))
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
    assert "nothing that was read is kept" in browser.get("publications/vehicles/samples").text
    assert "the target holds no structure" in browser.get("publications/structures/samples").text


def test_structures_are_shown_with_the_topics_they_would_go_to(home, browser):
    urn = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist={}(1.0)"
    held = [Held(urn.format(name)) for name in ("CITY:CL_A", "CITY:CL_B", "OTHER:CL_C", f"CITY:{ATTACK}")]
    state = home.publication("structures").state
    state.commit(write_files(state, state_table(held)))
    text = browser.get("publications/structures/samples").text
    assert "Where 4 structures that the target holds would go" in text
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
    assert "4 topics are as the publication says; 1 setting differs; 1 topic is not there yet" in text
    assert "Kafka takes no partition away" in text
    assert text.count("&lt;script&gt;") == 2
    assert "<script>alert" not in text
    assert browser.get("publications/vehicles/topics/drift/plan", "ben").status_code == 404


def test_brokers_that_can_not_be_asked_are_a_problem_on_the_page(browser, monkeypatch):
    assert "there is no Airflow connection" in browser.get("publications/vehicles/topics/drift/plan").text
    monkeypatch.setattr(fragments, "_AT_ONCE", fragments.BoundedSemaphore(1))
    assert fragments._AT_ONCE.acquire(blocking=False)
    assert "are being asked already" in browser.get("publications/vehicles/topics/drift/plan").text


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
