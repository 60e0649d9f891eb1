"""Reports and Data Docs in a browser whose network is off: they load nothing, and look as they should."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication, records
from builders.quarantines import refused
from contexture.operations.reports.build import ReportSources, quality_report
from contexture.operations.reports.html import page
from contexture.operations.reports.model import ReportPeriod
from contexture.operations.status.sources import Tables
from contexture.publications import Publication
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from e2e.browser import browser, missing
from spark_jobs.quality.checkpoint import judge
from spark_jobs.quality.frames import AcceptedFrames
from spark_jobs.quality.summary import RunSummary

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser"),
]
pytest.importorskip("selenium")

GROUNDS = {"light": "rgb(252, 252, 251)", "dark": "rgb(22, 24, 27)"}


def judged(folder: Path) -> Path:
    """The report of a run that broke an expectation, as stage writes it; in memory, without Spark."""
    owner = Publication.model_validate(
        {
            "name": "vehicles",
            "source": {"kind": "ngsi", "connection": "broker", "service": "vehicles", "types": ["car"]},
            "quality": {"ranges": {"speed": {"minimum": 0, "maximum": 200}}},
        }
    )
    rows = [
        {
            "identity": f'["vehicles","/","car{number}","car"]',
            "service": "vehicles",
            "service_path": "/",
            "id": f"car{number}",
            "type": "car",
            "modified_at": NOON,
            "received_at": NOON,
            "topic": "cars",
            "type_speed": "Number",
            "value_speed": 50.0 * number,
        }
        for number in range(8)
    ]
    counts = {"read": 8, "accepted": 8, "quarantined": 0, "in_source": 8, "unchanged": 0}
    summary = RunSummary(**counts, newest_modified_at=NOON, reference_time=NOON)
    frames = AcceptedFrames(lambda: pytest.fail("Spark is not needed"), lambda: pa.Table.from_pylist(rows))
    judge(owner, frames, summary, outbox="outbox1", run="run1", report=StoredFolder(FileTree(str(folder)), ""))
    return folder


def reported(folder: Path) -> Path:
    """The report of several runs, of which some refused something."""
    storage = Home(str(folder / "home"))
    for sequence in range(1, 7):
        made = outbox(
            storage, publication(), sequence, [records("a")], failed={"range": "warning"} if sequence > 4 else {}
        )
        changed = made.model_copy(update={"quarantined": {"datetime": sequence}, "quarantined_entities": sequence})
        storage.write(PublicationPaths("vehicles").manifest(made.outbox), changed.to_json())
        refused(storage, made.outbox, {"datetime": sequence})
    sources = ReportSources(storage, Tables(None), datetime(2026, 3, 2, tzinfo=UTC))
    file = folder / "vehicles.html"
    file.write_bytes(page(quality_report(sources, "vehicles", ReportPeriod(last=40))))
    return file


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser window without a network."""
    with browser("about:blank", tmp_path_factory.mktemp("browser")) as opened:
        opened.driver.execute_cdp_cmd("Network.enable", {})
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        opened.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        yield opened


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The documents by what they are."""
    folder = judged(tmp_path_factory.mktemp("report"))
    [validation] = (folder / "data_docs" / "validations" / "entities").rglob("*.html")
    return {
        "runs": reported(tmp_path_factory.mktemp("runs")),
        "run": folder / "index.html",
        "index": folder / "data_docs" / "index.html",
        "validation": validation,
        "suite": folder / "data_docs" / "expectations" / "entities.html",
    }


@pytest.mark.parametrize("document", ["runs", "run", "index", "validation", "suite"])
def test_a_document_loads_nothing_and_has_its_style_by_day_and_by_night(window, documents, document):
    window.driver.get(documents[document].as_uri())
    assert window.ask("return performance.getEntriesByType('resource').map(each => each.name)") == []
    assert {theme: window.theme(theme) for theme in GROUNDS} == GROUNDS
    window.theme("light")
    assert window.ask("return document.documentElement.scrollWidth <= window.innerWidth")
    assert "system-ui" in window.ask("return getComputedStyle(document.body).fontFamily")


def test_data_docs_have_their_contents_beside_them_and_show_more_without_a_script(window, documents):
    window.driver.get(documents["validation"].as_uri())
    side, main = window.ask(
        "return ['.col-md-2', '.col-md-10'].map(each => document.querySelector(each).getBoundingClientRect().toJSON())"
    )
    assert side["right"] <= main["left"]
    assert abs(side["top"] - main["top"]) < 2
    more = window.find(".collapse")
    assert not more.is_displayed()
    window.driver.find_element("partial link text", "Show more info").click()
    assert window.find(".collapse").is_displayed()
    window.driver.find_element("css selector", ".breadcrumb a").click()
    assert "7 of 8" in window.driver.find_element("css selector", "table").text


def test_plots_are_drawn(window, documents):
    window.driver.get(documents["runs"].as_uri())
    heights = window.ask(
        "return [...document.querySelectorAll('figure rect.failed')].map(each => each.getBoundingClientRect().height)"
    )
    assert [round(6 * height / heights[-1]) for height in heights] == [1, 2, 3, 4, 5, 6]
    assert heights[-1] > 80
    window.picture("quality-report")
