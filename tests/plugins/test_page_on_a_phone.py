"""The page in windows of a browser, from a phone to a wide screen: nothing overflows, and anyone can read it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.attempts import failed_send  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from builders.page_browser import Browser as Client  # noqa: E402
from builders.page_world import AIR, page_world  # noqa: E402
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_airflow.web import pages as page_routes  # noqa: E402
from contexture_sandbox.context_broker import SeedEntity, TestBroker  # noqa: E402
from e2e.browser import Browser, browser, missing  # noqa: E402

FILE = """
name: vehicles
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}
"""
MESSAGE = (
    "the context broker at http://orion.example.org:1026 did not answer. Next: check that it runs, then start a run"
)
OUTBOX = "outbox" * 7
PARTS = ("", "/transactions", "/runs", "/quality")
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
STICKS_OUT = """
return [...document.querySelectorAll("main *")]
  .filter(each => !each.closest(".wide") && each.getBoundingClientRect().right > innerWidth - 15)
  .map(each => each.tagName + " " + each.className)"""
SIDEBAR = 90
"""Pixels of Airflow's own navigation, beside the frame of the page."""
CUT_OFF = """
return [...document.querySelectorAll(".wide")]
  .filter(each => each.scrollWidth > each.clientWidth).map(each => each.scrollWidth - each.clientWidth)"""
CRUSHED = """
return [...document.querySelectorAll(".wide td:not(.number)")]
  .filter(each => each.textContent.trim().length > 12 && each.clientWidth < 90).map(each => each.textContent)"""


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages of a publication with long messages, as files."""
    (tmp_path / "publications").mkdir()
    (tmp_path / "publications" / "vehicles.yaml").write_text(FILE)
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    fill(Home(str(tmp_path / "home")))
    client, style = Client("vehicles"), Path(page_routes.__file__).parent / "static" / "page.css"
    addresses = {f"{number}": f"publications/vehicles{part}" for number, part in enumerate(PARTS)}
    for name, address in {**addresses, "overview": ""}.items():
        text = client.get(address).text
        (tmp_path / f"{name}.html").write_text(text.replace("/contexture/static/page.css", style.as_uri()))
    return tmp_path


def fill(home: Home) -> None:
    outbox(home, publication(), 1, [records("a")], name=OUTBOX)
    home.publication("vehicles").outboxes.set_status(OUTBOX, "approved", reason="good")
    home.publication("vehicles").attempts.keep(
        failed_send(OUTBOX, shard=0, state="stopped", next_at=None, message=MESSAGE)
    )
    store = RunTables.of_home(home.root)
    assert store is not None
    for number in range(40):
        run_id = f"scheduled__2026-03-01T12:{number}:00+00:00"
        store.insert_run("vehicles", f"run{number}", run_id=run_id, mode="changes", sequence=1)
        store.set_run_outbox("vehicles", f"run{number}", outbox=OUTBOX)
        store.set_run_failed("vehicles", run_id, task="publish", message=MESSAGE)
    failed = TransactionStatus.BROKER_ERROR
    at = NOON - timedelta(hours=1)
    store.set_transaction(TransactionRow("vehicles", OUTBOX, 0, 0, failed, 5, 123_456_789, 5, 4711, MESSAGE, at))
    sent = TransactionStatus.SENT
    store.set_transaction(
        TransactionRow("vehicles", "earlier", 0, 0, sent, 123_456_789, 10**10, 5, 4711, None, at, source_deletions=True)
    )
    store.close()


@pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")
def test_nothing_sticks_out_of_a_phone_and_no_column_is_crushed(pages: Path) -> None:
    with browser("", pages) as window:
        window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
        for number, part in enumerate(PARTS):
            window.driver.get((pages / f"{number}.html").as_uri())
            assert (part, window.ask(STICKS_OUT), window.ask(CRUSHED)) == (part, [], [])


@pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")
@pytest.mark.parametrize("width", [1280, 1440, 1920])
def test_the_overview_shows_all_its_columns_in_a_window_beside_airflow_s_navigation(pages: Path, width: int) -> None:
    window_of = {"width": width - SIDEBAR, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    with browser("", pages) as window:
        window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window_of)
        window.driver.get((pages / "overview.html").as_uri())
        window.picture(f"overview-{width}")
        assert window.ask(CUT_OFF) == []


OVERFLOWS = """
const wide = document.documentElement.scrollWidth > innerWidth ? ["the page"] : [];
return wide.concat([...document.querySelectorAll("main *")]
  .filter(each => !each.closest(".wide, .hidden, svg, pre, thead") && each.getBoundingClientRect().right > innerWidth)
  .map(each => each.tagName + " " + each.className + " " + each.textContent.slice(0, 40)))"""
WINDOWS = {390: 844, 1280: 900, 1920: 1080}
SHOWN = {
    "overview": "",
    "running": "publications/city-vehicles",
    "stopped": "publications/waste-containers",
    "quarantine": f"publications/{AIR}/quarantine",
    "refused": f"publications/{AIR}/quarantine/outbox9/1",
    "quality": f"publications/{AIR}/quality",
    "runs": "publications/parking/runs",
    "topics": "publications/parking/topics",
    "transactions": "publications/parking/transactions",
    "drift": "publications/parking/topics/drift",
    "run": "airflow?dag=publish_parking&run=scheduled__2026-03-01T11%3A56%3A00%2B00%3A00",
    "samples": "publications/parking/samples",
    "dead-letters": "publications/parking/dead-letters",
    "confirm": "publications/parking/actions/run",
    "connections": "publications/parking/connections",
    "new": "new?connection=city&kind=ngsi&service=city",
    "proposal": "new/proposal?connection=city&kind=ngsi&service=city&type=BikeStation",
}
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A window on the page of an installation, as a user who may do everything."""
    if missing():
        pytest.skip(missing())
    folder = tmp_path_factory.mktemp("world")
    station = {"id": "station1", "type": "BikeStation", "bikes": {"type": "Number", "value": 5}}
    with pytest.MonkeyPatch.context() as changes, TestBroker() as broker:
        broker.load([SeedEntity("city", f"/districts/{place}", station) for place in range(30)])
        for connection_id in ("CITY", "CONTEXT_BROKER"):
            changes.setenv(f"AIRFLOW_CONN_{connection_id}", broker.url)
        changes.setenv("CONTEXTURE_HOME", str(folder / "home"))
        changes.setenv("CONTEXTURE_PUBLICATIONS", str(folder / "publications"))
        changes.delenv("CONTEXTURE_DATABASE", raising=False)
        with page_world(folder).serve() as address, browser(address, folder) as opened:
            opened.driver.execute_cdp_cmd("Network.enable", {})
            opened.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {"x-user": "ana"}})
            yield opened


def show(window: Browser, path: str, width: int = 1280, theme: str = "light") -> None:
    """Opens a page in a window of this width, and waits until everything is loaded."""
    size = {"width": width, "height": WINDOWS[width], "deviceScaleFactor": 1, "mobile": width < 700}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    window.theme(theme)
    window.driver.get(f"{window.address}/{path}")
    window.await_gone("[aria-busy]")


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("name", SHOWN)
def test_nothing_overflows(window: Browser, name: str, width: int) -> None:
    show(window, SHOWN[name], width)
    window.picture(f"{name}-{width}")
    assert window.ask(OVERFLOWS) == []


def test_on_a_phone_the_overview_is_a_list_of_cards(window: Browser) -> None:
    show(window, "", 390)
    cards = window.ask("return [...document.querySelectorAll('.overview tbody tr')].map(each => each.innerText)")
    assert [card.split("\n")[0] for card in cards] == [
        "waste-containers",
        "air-quality-stations-of-the-metropolitan-area",
        "city-vehicles",
        "streetlights",
        "parking",
    ]
    assert "late by 30 min" in cards[1]
    edges = (
        "return [...document.querySelectorAll('.overview tbody tr')].map(each => each.getBoundingClientRect().width)"
    )
    assert {round(width) for width in window.ask(edges)} == {358}


def test_charts_fill_their_width_and_each_column_says_its_run(window: Browser) -> None:
    show(window, "publications/parking")
    labels = window.ask("return [...document.querySelectorAll('#records-parking title')].map(each => each.textContent)")
    assert labels == [
        "2026-03-01 11:46, succeeded: 297",
        "2026-03-01 11:51, succeeded: 394",
        "2026-03-01 11:56, succeeded: 491",
    ]
    spread = """
    const all = document.querySelector("#records-parking svg").getBoundingClientRect();
    const last = [...document.querySelectorAll("#records-parking rect.whole")].pop().getBoundingClientRect();
    return (all.right - last.right) / all.width"""
    assert window.ask(spread) < 0.11


def test_a_run_shows_its_progress_and_is_loaded_again(window: Browser) -> None:
    show(window, "publications/city-vehicles")
    assert "publish for 30 s" in window.text
    assert "620 of 1,240 records" in window.text
    assert "about 30 s left" in window.text
    window.ask("document.querySelector('#now').firstElementChild.textContent = 'old'")
    window.await_text("publish for 30 s")


def test_a_part_that_can_not_be_loaded_says_so_and_is_loaded_on_request(window: Browser) -> None:
    window.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/topics/drift/plan"]})
    try:
        show(window, SHOWN["drift"])
        window.await_text("This part could not be loaded.")
    finally:
        window.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    window.press("button", "Load it again")
    window.await_text("there is no Airflow connection")


def test_defaults_of_the_configuration_are_hidden_until_requested(window: Browser) -> None:
    show(window, "publications/parking")
    assert "name: parking" not in window.text
    window.press("summary", "The file")
    assert "name: parking" in window.await_text("Show the defaults too")
    assert "archive_days" not in window.text
    window.press(".configuration label")
    window.await_text("archive_days: 30  # default")


def test_the_keyboard_reaches_everything_and_keeps_its_place_when_a_part_is_loaded_again(window: Browser) -> None:
    show(window, "publications/city-vehicles")
    link = window.ask("return [...document.querySelectorAll('#now a')].map(each => each.getAttribute('href'))")[1]
    window.ask("document.querySelector('#now').dataset.seen = 'before'")
    window.ask("document.querySelectorAll('#now a')[1].focus()")
    window.await_gone("#now[data-seen]")
    assert window.ask("return document.activeElement.getAttribute('href')") == link
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    seen = []
    for _ in range(60):
        press_tab(window)
        seen.append(window.ask("return document.activeElement.tagName"))
        assert (seen[-1], window.ask(outline) != "none") in {(seen[-1], True), ("BODY", False)}
    assert {"A", "SUMMARY"} <= set(seen)


def press_tab(window: Browser) -> None:
    from selenium.webdriver import ActionChains, Keys

    ActionChains(window.driver).send_keys(Keys.TAB).perform()


@pytest.mark.skipif(find_spec("selenium_axe_python") is None, reason="axe-core not installed")
def test_a_broken_rule_of_accessibility_is_found(window: Browser) -> None:
    show(window, "")
    window.ask("document.querySelector('main').append(document.createElement('img'), document.createElement('input'))")
    assert [broken.split(":")[0] for broken in broken_rules(window)] == ["image-alt", "label"]


@pytest.mark.skipif(find_spec("selenium_axe_python") is None, reason="axe-core not installed")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_pages_follow_the_rules_of_accessibility(window: Browser, name: str, theme: str) -> None:
    show(window, SHOWN[name], theme=theme)
    window.ask("document.querySelectorAll('details').forEach(each => each.open = true)")
    if theme == "dark":
        window.picture(f"{name}-dark")
    assert broken_rules(window) == []


@pytest.mark.skipif(find_spec("selenium_axe_python") is None, reason="axe-core not installed")
@pytest.mark.parametrize("name", ["overview", "running", "quarantine"])
def test_pages_on_a_phone_follow_the_rules_of_accessibility(window: Browser, name: str) -> None:
    show(window, SHOWN[name], 390)
    assert broken_rules(window) == []


def broken_rules(window: Browser) -> list[str]:
    """The rules of axe-core that a page breaks, each with its first element."""
    found = find_spec("selenium_axe_python")
    assert found is not None
    assert found.submodule_search_locations is not None
    script = Path(found.submodule_search_locations[0]) / "axe-core" / "axe.min.js"
    window.driver.execute_script(script.read_text())
    window.driver.set_script_timeout(60)
    options: dict[str, Any] = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    answer = window.driver.execute_async_script(
        "axe.run(document, JSON.parse(arguments[0])).then(arguments[1])", json.dumps(options)
    )
    return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in answer["violations"]]


def test_a_publication_is_proposed_by_clicks_alone_and_downloaded(window: Browser, tmp_path: Path) -> None:
    window.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    show(window, "")
    window.press("a.button", "New publication")
    window.write("#connection", "city")
    window.press("button", "Show what it has")
    window.await_text("Known are")
    window.write("#service", "city")
    window.press("button", "Count its entities")
    window.await_text("30 entities counted.")
    window.press("label", "BikeStation")
    window.press("button", "Propose a file")
    window.await_text("It selects 30 entities now.")
    window.press("button", "Download")
    window.press("button", "Copy")
    deadline = time.monotonic() + 30
    while not (tmp_path / "bike-station.yaml").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    shown = window.ask("return document.querySelector('#text').value")
    assert (tmp_path / "bike-station.yaml").read_text() == shown
    selected = "const field = document.querySelector('#text'); return [field.selectionStart, field.selectionEnd]"
    assert window.ask(selected) == [0, len(shown)]
