"""The Contexture page over HTTP: who sees what, that nothing hostile gets through, and that long lists stay quick."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")


from builders.attempts import failed_send  # noqa: E402
from builders.large_home import LARGEST_PAGES, NAMES, large_home  # noqa: E402
from builders.layout import PublicationPaths  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from builders.page_browser import Browser  # noqa: E402
from builders.page_installation import FILE  # noqa: E402
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus, VerificationRow  # noqa: E402
from contexture.operations.status.health import OpenQuestion  # noqa: E402
from contexture.storage.delivery import (  # noqa: E402
    DeadLetterIndex,
)
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.incompleteness import Incompleteness  # noqa: E402
from contexture.storage.publication_store import run_name  # noqa: E402
from contexture.storage.shrink_report import ShrinkReport  # noqa: E402
from contexture.storage.state import StatePointer  # noqa: E402

ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
ATTACKS = ("<script>alert", "<img src=x")
PARTS = ("transactions", "runs", "topics", "quarantine", "quality", "dead-letters", "samples", "connections")
PAGES = ("", "publications/vehicles", *(f"publications/vehicles/{part}" for part in PARTS))
APIS = tuple(f"api/{page or 'publications'}" for page in PAGES[:-2])


def transaction(number: int = 0, **changes: Any) -> TransactionRow:
    columns: dict[str, Any] = {
        "publication": "vehicles",
        "outbox": "outbox1",
        "shard": 0,
        "number": number,
        "status": TransactionStatus.SENT,
        "records": 10,
        "bytes": 1_500,
        "position": 10,
        "source_transaction": None,
        "message": None,
        "updated_at": NOON - timedelta(hours=1),
    }
    return TransactionRow(**(columns | changes))


@pytest.mark.parametrize("page", PAGES)
def test_who_is_not_logged_in_gets_airflow_s_login(browser, page):
    answer = browser.get(page, user=None)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/api/v2/auth/login?next=%2Fplugin%2Fcontexture"


@pytest.mark.parametrize("page", APIS)
def test_a_script_without_a_token_gets_the_status(browser, page):
    answer = browser.get(page, user=None)
    assert (answer.status_code, answer.json()) == (401, {"error": "Not authenticated"})


@pytest.mark.parametrize("page", [*PAGES, *APIS])
def test_a_user_sees_only_what_airflow_lets_them_read(browser, page):
    answer = browser.get(page, user="ben")
    assert answer.status_code == (404 if "vehicles" in page else 200)
    assert "4wheels" not in answer.text
    if "vehicles" not in page:
        assert "buses" in answer.text
        assert "vehicles" not in answer.text


@pytest.mark.parametrize("page", [*PAGES, *APIS])
def test_every_page_of_a_publication_that_never_ran_is_there(browser, page):
    assert browser.get(page).status_code == 200


@pytest.mark.parametrize("page", [*PAGES, *APIS])
def test_nothing_can_be_done_there_but_reading(browser, page):
    assert browser.post(page).status_code == 405


def test_an_empty_installation_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "none"))
    answer = Browser().get("")
    assert answer.status_code == 200
    assert "There is no publication yet" in answer.text
    assert not (tmp_path / "home").exists()


def test_a_dag_that_is_no_publication_of_ours_is_left_out(home):
    assert "another-s" not in Browser("vehicles", "another-s").get("").text


@pytest.mark.parametrize("page", [*PAGES, *APIS, "static/page.css", "publications/none"])
def test_every_answer_forbids_what_is_not_its_own(browser, page):
    headers = browser.get(page).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self';")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("page", PAGES)
def test_pages_load_nothing_from_elsewhere_and_hold_no_script(browser, page):
    text = browser.get(page).text
    assert text.count("<script") == 1
    assert '<script src="/contexture/static/page.js" defer></script>' in text
    assert "http" not in text.replace("http-equiv", "")
    assert "style=" not in text


def test_styles_and_the_script_are_served(browser):
    assert "light-dark(" in browser.get("static/page.css").text
    assert "data-leave" in browser.get("static/page.js").text
    assert browser.get("static/../application.py").status_code == 404
    assert browser.get("static/%2e%2e/application.py").status_code == 404


def test_addresses_stand_behind_airflow_s_own_path(home):
    browser = Browser("vehicles", root_path="/airflow")
    text = browser.get("publications/vehicles").text
    assert 'href="/airflow/contexture/publications/vehicles/runs"' in text
    assert 'href="/airflow/dags/publish_vehicles"' in text
    assert browser.get("api/publications", user=None).status_code == 401
    login = browser.get("", user=None).headers["location"]
    assert login == "/airflow/api/v2/auth/login?next=%2Fairflow%2Fplugin%2Fcontexture"


def test_monitoring_gets_the_status_of_what_its_user_may_see(browser: Browser) -> None:
    document = browser.get("api/status").json()
    assert [(each["publication"], each["running"]) for each in document["publications"]] == [
        ("buses", True),
        ("vehicles", True),
    ]
    assert document["operational_tables_problem"] is None
    assert browser.get("api/status/vehicles").json() == document["publications"][1]
    assert [each["publication"] for each in browser.get("api/status", user="ben").json()["publications"]] == ["buses"]
    assert browser.get("api/status/vehicles", user="ben").status_code == 404
    assert browser.get("api/status", user=None).status_code == 401


@pytest.fixture
def hostile(home: Home, tables: RunTables) -> Browser:
    """Everything that others can name is an attack."""
    path = Path(home.root).parent / "publications" / f"{'vehicles'}.yaml"
    path.write_text(FILE.format(name="vehicles") + f"description: '{ATTACK}'\n")
    (path.parent / "<img src=x onerror=alert(3)>.yaml").write_text("name: [")
    first = outbox(home, publication(), 1, [records("a", topic=ATTACK)])
    broken = first.model_copy(update={"quarantined": {ATTACK: 1}, "warnings": {ATTACK: 1}})
    home.write("vehicles/outbox/outbox1/manifest.json", broken.to_json())
    home.publication("vehicles").outboxes.set_status("outbox1", "approved", reason=ATTACK)
    stopped = failed_send("outbox1", shard=0, state="stopped", next_at=None, message=ATTACK)
    home.publication("vehicles").attempts.keep(stopped)
    home.publication("vehicles").state.commit(
        StatePointer(concluded_at=NOON, outbox="outbox1", watermark=ATTACK, full_run_due=ATTACK)
    )
    tables.insert_run("vehicles", "run1", run_id=ATTACK, mode="changes", sequence=1)
    tables.set_run_failed("vehicles", ATTACK, task=ATTACK, message=ATTACK)
    tables.set_transaction(transaction(message=ATTACK))
    return Browser("vehicles", "buses")


def test_deletions_that_are_not_detected_are_shown_with_what_to_do_also_where_something_else_is_wrong(home, tables):
    unseen = Incompleteness(since=NOON, runs=3, why="the walk is short", next_step="read again")
    home.publication("vehicles").state.commit(StatePointer(concluded_at=NOON, outbox="outbox1", incomplete=unseen))
    sentence = "since 2026-03-01 12:00 UTC (3 runs): the walk is short. Next: read again"
    browser = Browser("vehicles", "buses")
    for page in ("", "publications/vehicles"):
        assert sentence in browser.get(page).text
    assert "deletions not detected 1</a>" in browser.get("").text
    outbox(home, publication(), 2, [records("a")])
    home.publication("vehicles").outboxes.set_status("outbox2", "approved", reason="good")
    home.publication("vehicles").attempts.keep(failed_send("outbox2", shard=0, state="stopped", next_at=None))
    for page in ("", "publications/vehicles"):
        text = browser.get(page).text
        assert (sentence in text, "stopped" in text) == (True, True)


@pytest.mark.parametrize("page", PAGES[:5])
def test_hostile_names_and_messages_stay_text(hostile, page):
    text = hostile.get(page).text
    assert not [attack for attack in ATTACKS if attack in text]
    assert "&lt;script&gt;alert(1)" in text


@pytest.mark.parametrize("page", APIS)
def test_hostile_names_in_json_are_no_page(hostile, page):
    answer = hostile.get(page)
    assert answer.headers["content-type"] == "application/json"
    assert answer.status_code == 200


def test_a_hostile_address_is_answered_by_text(hostile):
    answers = [
        hostile.get(f"publications/{ATTACK}"),
        hostile.get("", page=ATTACK),
        hostile.get("", health=ATTACK),
        hostile.get("publications/vehicles/transactions", status=ATTACK),
    ]
    assert [answer.status_code for answer in answers] == [404, 422, 422, 422]
    assert not [answer for answer in answers if any(attack in answer.text for attack in ATTACKS)]


def test_a_file_that_is_no_publication_is_named_to_who_sees_everything_else(hostile):
    assert "&lt;img src=x onerror=alert(3)&gt;.yaml" in hostile.get("").text
    assert "onerror=alert(3)" not in hostile.get("", user="ben").text


def test_the_overview_shows_what_stopped_and_why(hostile):
    [line, _] = hostile.get("api/publications").json()["lines"]
    assert (line["name"], line["health"]) == ("vehicles", "stopped")
    assert line["reason"].startswith("shard 0, attempt 1 of 11, stopped: ")


def test_what_is_suspended_is_counted_and_shown_alone(home):
    browser = Browser("vehicles", "buses", paused=["buses"])
    assert 'href="/contexture/?suspended=true">suspended 1</a>' in browser.get("").text
    shown = browser.get("", suspended="true").text
    assert "publications/buses" in shown
    assert "publications/vehicles" not in shown
    assert '<a href="/contexture/?suspended=true" aria-current="page">' in shown
    document = browser.get("api/publications", suspended="true").json()
    assert ([line["name"] for line in document["lines"]], document["suspended"]) == (["buses"], 1)


def test_where_nothing_is_suspended_nothing_is_said_of_it(browser):
    assert "suspended" not in browser.get("").text


def test_a_publication_shows_its_configuration_with_its_defaults(browser):
    text = browser.get("publications/vehicles").text
    assert "<span>name: vehicles</span>" in text
    assert '<span class="default">  archive_days: 30  # default</span>' in text


def test_a_changed_file_is_read_again(home, browser):
    assert "of the depot" not in browser.get("").text
    path = Path(home.root).parent / "publications" / "vehicles.yaml"
    path.write_text(FILE.format(name="vehicles") + "description: of the depot\n")
    assert "of the depot" in browser.get("").text


def test_secrets_of_the_installation_are_in_no_answer(home, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_DATABASE", "nosuchdriver://contexture:hunter2@127.0.0.1:1/none")
    monkeypatch.setenv("AIRFLOW_CONN_CONTEXT_BROKER", '{"conn_type": "http", "password": "hunter2"}')
    browser = Browser("vehicles", "buses")
    answers = [browser.get(page) for page in (*PAGES, *APIS)]
    assert {answer.status_code for answer in answers} == {200}
    assert "Shown without the operational tables" in answers[0].text
    assert not [answer for answer in answers if "hunter2" in answer.text]


def test_while_the_tables_are_away_nothing_is_said_that_they_alone_know(home, monkeypatch):
    home.publication("vehicles").state.commit(StatePointer(concluded_at=NOON, outbox="outbox1"))
    path = Path(home.root).parent / "publications" / "vehicles.yaml"
    path.write_text(FILE.format(name="vehicles") + "publish: {on_failure: dead-letter}\n")
    monkeypatch.setenv("CONTEXTURE_DATABASE", "nosuchdriver://contexture:hunter2@127.0.0.1:1/none")
    browser = Browser("vehicles", "buses")
    unknown = "whether its last run failed is not known without the operational tables"
    lines = browser.get("api/publications").json()["lines"]
    assert [(line["health"], line["reason"], line["today"]) for line in lines] == [
        ("never run", unknown, None),
        ("idle", unknown, None),
    ]
    assert browser.get("api/status/vehicles").json()["reason"] == unknown
    assert browser.get("").text.count("today not known</span>") == 2
    assert "/trends" not in browser.get("").text
    text = browser.get("publications/vehicles").text
    assert text.count("not known</") == 3
    assert not [false for false in ("never verified", ">none</a>", "0 records", "by status") if false in text]
    assert "There are no dead letters" not in browser.get("publications/vehicles/dead-letters").text


def test_a_home_that_has_no_tables_says_so(home, monkeypatch):
    monkeypatch.setattr("contexture.monitoring.store.database_url", lambda root: None)
    text = Browser("vehicles").get("").text
    assert "Shown without the operational tables: there are none, because CONTEXTURE_HOME is an object store" in text


def test_transactions_are_filtered_by_status_and_come_by_page(browser, tables):
    for number in range(60):
        tables.set_transaction(transaction(number, source_transaction=100 + number))
    tables.set_transaction(
        transaction(60, status=TransactionStatus.LOCAL_FAILURE, message="the record is larger than the client sends")
    )
    second = browser.get("api/publications/vehicles/transactions", page=2).json()
    assert (len(second["rows"]), second["paging"]["total"]) == (11, 61)
    assert second["statuses"] == {"0": 0, "1": 60, "2": 1, "3": 0, "4": 0}
    text = browser.get("publications/vehicles/transactions", status=2).text
    assert "the record is larger than the client sends" in text
    assert text.count('<td class="moment">') == 1
    pages = browser.get("publications/vehicles/transactions", status=1).text
    assert 'href="/contexture/publications/vehicles/transactions?status=1&amp;page=2"' in pages


def test_runs_show_the_time_and_the_log_of_each_step(browser, tables):
    tables.insert_run("vehicles", "run1", run_id="manual__2026-03-01T12:00:00+00:00", mode="full", sequence=1)
    text = browser.get("publications/vehicles/runs").text
    address = "/dags/publish_vehicles/runs/manual__2026-03-01T12%3A00%3A00%2B00%3A00/tasks"
    for page in (text, browser.get("publications/vehicles").text):
        assert f'<a href="{address}/stage" data-leave title="Log of stage">stage</a> ' in page
        assert f'<a href="{address}/publish/mapped/1" data-leave title="Log of publish">publish</a> ' in page
        assert ("12.5 s" in page, "1 min 1 s" in page, "(failed)" in page) == (True, True, True)
    assert 'href="/dags/publish_vehicles/runs/manual__2026-03-01T12%3A00%3A00%2B00%3A00" data-leave' in text


def test_a_report_is_shown_without_any_script(home, browser):
    outbox(home, publication(), 1, [records("a")])
    home.write("vehicles/report/outbox1/index.html", b"<script>alert(1)</script>")
    home.write("vehicles/report/outbox1/data_docs/index.html", b"docs")
    home.write("vehicles/report/outbox1/gx_result.json", b"{}")
    home.publication("vehicles").state.commit(StatePointer(concluded_at=NOON, outbox="outbox1"))
    assert "reports/outbox1/data_docs/index.html" in browser.get("publications/vehicles").text
    answer = browser.get("publications/vehicles/reports/outbox1/index.html")
    assert answer.text == "<script>alert(1)</script>"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script-src" not in policy
    assert browser.get("publications/vehicles/reports/outbox1/data_docs/index.html").text == "docs"
    kind = browser.get("publications/vehicles/reports/outbox1/gx_result.json").headers["content-type"]
    assert kind == "application/json"
    assert browser.get("publications/vehicles/reports/outbox1/index.html", user="ben").status_code == 404


@pytest.mark.parametrize(("form", "kind"), [("html", "text/html; charset=utf-8"), ("json", "application/json")])
def test_the_quality_of_runs_can_be_taken_along_as_a_file(home, browser, form, kind):
    for sequence in (1, 2):
        outbox(home, publication(), sequence, [records("a")])
    text = browser.get("publications/vehicles/quality").text
    answer = browser.get(f"publications/vehicles/report.{form}")
    assert "/contexture/publications/vehicles/report.html" in text
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''vehicles-quality.{form}"
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "script-src" not in answer.headers["content-security-policy"]
    assert browser.get(f"publications/vehicles/report.{form}", user="eve").text == answer.text
    assert browser.get(f"publications/vehicles/report.{form}", user="ben").status_code == 404
    assert browser.get(f"publications/vehicles/report.{form}", user=None).status_code == 303
    assert browser.post(f"publications/vehicles/report.{form}").status_code == 405


def test_a_report_that_the_browser_shows_links_to_the_quarantine_and_a_file_does_not(home, browser):
    made = outbox(home, publication(), 1, [records("a")])
    changed = made.model_copy(update={"quarantined": {"number-string": 1}, "quarantined_entities": 1})
    home.write(PublicationPaths("vehicles").manifest("outbox1"), changed.to_json())
    link = "/contexture/publications/vehicles/quarantine?rule=number-string"
    shown = browser.get("publications/vehicles/report.html", download="false")
    assert shown.headers["content-disposition"] == "inline; filename*=UTF-8''vehicles-quality.html"
    assert shown.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert link in shown.text
    assert link not in browser.get("publications/vehicles/report.html").text
    assert "report.html?download=false" in browser.get("publications/vehicles/quality").text


def test_a_file_is_about_the_runs_that_were_asked_for(home, browser):
    for sequence in (1, 2, 3):
        outbox(home, publication(), sequence, [records("a")])

    def sequences(**query: Any) -> list[int]:
        return [run["sequence"] for run in browser.get("publications/vehicles/report.json", **query).json()["runs"]]

    assert sequences(last=2) == [2, 3]
    assert sequences(run="outbox1") == [1]
    assert sequences(until="2026-03-01T00:00:00") == []
    wrong = browser.get("publications/vehicles/report.json", since="2026-03-02", until="2026-03-01")
    assert (wrong.status_code, "since: this is not before until" in wrong.text) == (422, True)
    assert browser.get("publications/vehicles/report.json", run="outbox9").status_code == 404
    assert browser.get("publications/vehicles/report.json", last=0).status_code == 422
    # Their time in UTC is before the first, and after the last that there is.
    for query in ({"since": "0001-01-01T00:00:00+14:00"}, {"until": "9999-12-31T23:59:59-12:00"}):
        assert browser.get("publications/vehicles/report.html", **query).status_code == 422
    assert sequences(since="0001-01-01", until="9999-12-31T23:59:59Z") == [1, 2, 3]
    assert browser.get("publications/vehicles/report.pdf").status_code == 422


def test_a_file_about_a_time_has_all_runs_of_it_as_on_the_command_line(home, browser):
    for sequence in range(1, 43):
        outbox(home, publication(), sequence, [])

    def runs_in_report(**query: Any) -> int:
        return len(browser.get("publications/vehicles/report.json", **query).json()["runs"])

    assert (runs_in_report(), runs_in_report(since="2020-01-01"), runs_in_report(since="2020-01-01", last=3)) == (
        40,
        42,
        3,
    )


def test_what_contexture_itself_did_is_read_by_no_connection_that_could_be_tested(home):
    folder = Path(home.root).parent / "publications"
    (folder / "own.yaml").write_text("name: own\nsource: {kind: operations}\ntopics: {topics: [contexture.events]}\n")
    text = Browser("own").get("publications/own").text
    assert re.findall(r">Test ([^<]*) …<", text) == ["kafka_default"]


def test_a_file_with_hostile_names_stays_text(hostile):
    text = hostile.get("publications/vehicles/report.html").text
    assert not [attack for attack in ATTACKS if attack in text]
    assert "&lt;script&gt;alert(1)" in text


def verification(**changes: Any) -> VerificationRow:
    found: dict[str, Any] = {
        "publication": "vehicles",
        "verified_at": NOON,
        "equal": False,
        "summary": "the topics differ from what was sent: 1 extra, of 9 keys",
        "sequence": 1,
        "expected": 9,
        "records": 10,
        "missing": 0,
        "extra": 1,
        "different": 0,
        "misordered": 0,
        "seconds": 1.5,
        "report": "vehicles/verification/20260301T120000000000Z/index.html",
    }
    return VerificationRow(**(found | changes))


def test_the_last_verification_is_shown_and_leads_to_its_report(home, browser, tables):
    home.write("vehicles/verification/20260301T120000000000Z/index.html", b"what differs")
    tables.insert_verification(verification(verified_at=NOON - timedelta(days=1), equal=True))
    tables.insert_verification(verification())
    address = "publications/vehicles/verifications/20260301T120000000000Z/index.html"

    for page in ("", "publications/vehicles"):
        text = browser.get(page).text
        assert "the topics differ from what was sent: 1 extra, of 9 keys" in text
        assert f'href="/contexture/{address}"' in text
    report = browser.get(address)
    assert report.text == "what differs"
    assert report.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert browser.get(address, user="ben").status_code == 404
    lines = browser.get("api/publications").json()["lines"]
    [line] = [each for each in lines if each["name"] == "vehicles"]
    assert (line["last_verification"]["equal"], line["last_verification"]["extra"]) == (False, 1)


def test_a_replica_that_is_as_it_should_be_is_shown_as_verified(browser, tables):
    tables.insert_verification(verification(equal=True))
    assert "equal to the target state" in browser.get("publications/vehicles").text
    assert "replica verified" in browser.get("").text
    assert "never verified" in browser.get("publications/buses").text


@pytest.mark.parametrize("path", ["%2e%2e/state/x.json", "..%2f..%2f..%2fsecret.json", "%2fsecret.json", "now/no.html"])
def test_no_file_but_those_of_verifications_is_served(home, browser, path):
    home.write("vehicles/state/x.json", b"state")
    (Path(home.root).parent / "secret.json").write_text("secret")
    assert browser.get(f"publications/vehicles/verifications/{path}").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "outbox1/none.html",
        "outbox1/verdict.parquet",
        "outbox1/.hidden.html",
        "outbox1/%2e%2e/%2e%2e/state/x.json",
        "outbox1/..%2f..%2f..%2f..%2fsecret.json",
        "%2e%2e/state/x.json",
        "outbox1/%2fsecret.json",
        "outbox1/a%00.html",
    ],
)
def test_no_file_but_those_of_reports_is_served(home, browser, path):
    home.write("vehicles/report/outbox1/index.html", b"report")
    home.write("vehicles/report/outbox1/.hidden.html", b"hidden")
    home.write("vehicles/state/x.json", b"state")
    (Path(home.root).parent / "secret.json").write_text("secret")
    answer = browser.get(f"publications/vehicles/reports/{path}")
    assert answer.status_code == 404
    assert answer.text.startswith("<!doctype html>")


def test_a_storage_that_does_not_answer_is_an_error_page(home, browser, monkeypatch):
    (Path(home.root) / "vehicles").mkdir()
    (Path(home.root) / "vehicles" / "state").write_text("a file where a folder should be")
    answer = browser.get("publications/vehicles")
    assert answer.status_code == 503
    assert "the storage could not read" in answer.text


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Browser:
    monkeypatch.setenv("CONTEXTURE_HOME", large_home(tmp_path).root)
    monkeypatch.setenv("CONTEXTURE_PUBLICATIONS", str(tmp_path / "publications"))
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    return Browser(*NAMES)


def test_two_hundred_publications_and_a_hundred_thousand_transactions_are_quick(large):
    large.get("")
    # The best of several, and of the processor's time: the machine is shared.
    took = {f"{path} {query}": min(_seconds(large, path, query) for _ in range(5)) for path, query in LARGEST_PAGES}
    assert {name: seconds for name, seconds in took.items() if seconds > 0.3} == {}


def _seconds(browser: Browser, path: str, query: Mapping[str, Any]) -> float:
    begun = time.process_time()
    answer = browser.get(path, **query)
    took = time.process_time() - begun
    assert answer.status_code == 200
    return took


def send_dead_letters(home: Home, tables: RunTables, *, file: str = "") -> None:
    path = Path(home.root).parent / "publications" / "vehicles.yaml"
    path.write_text(FILE.format(name="vehicles") + (file or "publish: {on_failure: dead-letter}\n"))
    manifest = outbox(home, publication(), 1, [records("a", "b")])
    home.publication(manifest.publication).outbox(manifest.outbox).write_dead_letters(
        DeadLetterIndex(shards={0: (0, 1)})
    )
    home.publication("vehicles").state.commit(StatePointer(concluded_at=NOON, outbox="outbox1"))
    tables.set_transaction(transaction(), dead_letters=2)


def test_what_can_never_be_sent_is_seen_wherever_the_publication_is_shown(home, browser, tables):
    assert "dead-letter topic" not in browser.get("").text
    send_dead_letters(home, tables)
    remark = (
        '<a class="small owing" href="/contexture/publications/vehicles/dead-letters">'
        "2 records in the dead-letter topic, the last 2026-03-01 11:00</a>"
    )
    for page in ("", "publications/vehicles"):
        assert remark in browser.get(page).text
    assert ">2 dead letters</a>" in browser.get("publications/vehicles").text
    assert ">2 dead letters</a>" in browser.get("publications/vehicles/transactions").text
    [line, _] = sorted(browser.get("api/publications").json()["lines"], key=lambda each: -len(each["name"]))
    assert (line["dead_letters"]["letters"], line["dead_letter_topic"]) == (2, "contexture.dead-letter.vehicles")


def test_the_page_of_dead_letters_says_how_to_read_them_and_what_to_do(home, browser, tables):
    send_dead_letters(home, tables)
    text = browser.get("publications/vehicles/dead-letters").text
    assert "<code>contexture.dead-letter.vehicles</code>" in text
    assert "<code>contexture dead-letters vehicles</code>" in text
    assert "No full run has sent them again since." in text
    assert "<td><code>outbox1</code></td>" in text
    assert 'href="/contexture/publications/vehicles/actions/resynchronise"' in text
    for_readers = browser.get("publications/vehicles/dead-letters", user="eve").text
    assert "actions/" not in for_readers
    assert "Ask an operator to resynchronise in full" in for_readers
    page = browser.get("api/publications/vehicles/dead-letters").json()
    assert [(row["outbox"], row["dead_letters"]) for row in page["rows"]] == [("outbox1", 2)]


def test_once_a_full_run_has_tried_them_again_they_are_marked_no_more(home, browser, tables):
    send_dead_letters(home, tables)
    tables.insert_run("vehicles", "run2", run_id="manual__2", mode="full", sequence=2)
    tables.set_run_succeeded("vehicles", "run2")
    assert '<a class="small" href="/contexture/publications/vehicles/dead-letters">2 records' in browser.get("").text
    assert "A full run has sent them again since." in browser.get("publications/vehicles/dead-letters").text


def test_a_publication_whose_file_has_such_records_stop_it_says_so(home, browser, tables):
    assert "publish.on_failure: stop" in browser.get("publications/vehicles/dead-letters").text
    assert "Dead letters</dt>" not in browser.get("publications/vehicles").text
    send_dead_letters(home, tables, file="publish: {on_failure: stop}\n")
    assert "were sent there by an earlier version of the file" in browser.get("publications/vehicles/dead-letters").text


def test_a_run_that_waits_for_an_answer_is_shown_with_what_it_asks_and_where(home, browser):
    run_id = "manual__2026-03-01T12:00:00+00:00"
    browser.airflow.questions["vehicles"] = OpenQuestion(run_id, "stage", NOON + timedelta(hours=2))
    home.publication("vehicles").run(run_name(run_id)).write_shrink_report(
        ShrinkReport.of([ATTACK, *"a" * 39], count=40, held=50, limit=10)
    )
    address = (
        'href="/dags/publish_vehicles/runs/manual__2026-03-01T12%3A00%3A00%2B00%3A00/tasks/stage/required_actions"'
    )
    for user in ("ana", "eve"):
        overview = browser.get("", user=user).text
        assert f'<a class="small" {address} data-leave>Answer in Airflow</a>' in overview
        assert '<span class="state waiting">waiting for approval</span>' in overview
        text = browser.get("publications/vehicles", user=user).text
        assert f'<a class="button" {address} data-leave>' in text
        assert "40 of 50 identities would be deleted, once a person approves until 2026-03-01 14:00 UTC" in text
        assert "One run may delete at most 10; the first 10 of them" in text
        assert text.count("<li><code>") == 10
        assert not [attack for attack in ATTACKS if attack in text]
        assert "&lt;script&gt;alert(1)" in text
    assert browser.get("publications/vehicles", user="ben").status_code == 404
    [first, _] = browser.get("api/status").json()["publications"][::-1]
    assert (first["publication"], first["running"], first["health"]) == ("vehicles", False, "waiting for approval")


def test_nothing_is_asked_where_no_run_waits(browser):
    assert "Answer in Airflow" not in browser.get("").text
    assert "Answer in Airflow" not in browser.get("publications/vehicles").text
