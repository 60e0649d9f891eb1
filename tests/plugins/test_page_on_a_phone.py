"""The page in windows of a browser, from a phone to a wide screen: nothing sticks out, and words stay whole."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.attempts import failed_send  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from builders.page_browser import Browser as Client  # noqa: E402
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture_airflow.web import mount  # noqa: E402
from e2e.browser import browser, missing  # noqa: E402

FILE = """
name: vehicles
source: {kind: ngsi, connection: context_broker, service: vehicles, service_path: /4wheels, types: [car]}
"""
MESSAGE = "the context broker at http://orion.example.org:1026 did not answer. Next: see that it runs, then start a run"
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
    client, style = Client("vehicles"), Path(mount.__file__).parent / "static" / "page.css"
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
