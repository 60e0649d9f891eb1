"""What can be done from the page: by whom, from where, with which words, and what Airflow is asked for it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.attempts import failed_send  # noqa: E402
from builders.layout import PublicationPaths  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from builders.page_browser import ORIGIN, Browser, hidden_in, token_in  # noqa: E402
from builders.page_installation import VEHICLES, page_installation  # noqa: E402
from contexture.errors import RetriableError  # noqa: E402
from contexture.monitoring import RunTables  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.schemas import QUARANTINE  # noqa: E402
from contexture.storage.shrink_report import ShrinkReport  # noqa: E402
from contexture_airflow.web import connections  # noqa: E402
from contexture_airflow.web.actions import ACTIONS  # noqa: E402
from contexture_airflow.web.installation import OutsideCalls  # noqa: E402

ATTACK = '"><script>alert(1)</script>'
RUN = "publications/vehicles/actions/run"
OF_PUBLICATION = sorted(key for key, action in ACTIONS.items() if not action.of_outbox)
OF_OUTBOX = sorted(key for key, action in ACTIONS.items() if action.of_outbox)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A publication with an approved outbox whose sends failed, and two events in quarantine."""
    storage = page_installation(tmp_path, monkeypatch, {"vehicles": VEHICLES["vehicles"]})
    outbox(storage, publication(), 1, [records("a")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="good")
    storage.publication("vehicles").attempts.keep(
        failed_send("outbox1", shard=0, state="stopped", next_at=None, message="away")
    )
    quarantine(storage, "outbox1", f"car{ATTACK}", "car2")
    return storage


def quarantine(storage: Home, name: str, *ids: str) -> None:
    row = {
        "operation": "upsert",
        "scope": "vehicles",
        "path": "/4wheels",
        "type": "car",
        "body": b'{"plate":"secret-plate"}',
        "received_at": datetime(2026, 3, 1, tzinfo=UTC),
        "rule": "number-string",
        "severity": "error",
        "message": "speed is not a number",
    }
    rows = [row | {"ordinal": place, "id": each} for place, each in enumerate(ids)]
    with storage.write_atomically(f"{PublicationPaths('vehicles').quarantine(name)}/part-0.parquet") as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=QUARANTINE), path)


@pytest.fixture
def browser(home: Home) -> Browser:
    return Browser("vehicles", dags=["verify_replica"])


def actions(home: Home) -> list[tuple[str, str, str, str, str, str | None]]:
    store = RunTables.of_home(home.root)
    assert store is not None
    try:
        return [
            (row.who, row.action, row.subject, row.reason, row.outcome, row.run_id) for row in store.interventions()
        ]
    finally:
        store.close()


def addresses() -> list[tuple[str, dict[str, str]]]:
    of_publication = [(f"publications/vehicles/actions/{key}", dict[str, str]()) for key in OF_PUBLICATION]
    of_outbox = [(f"publications/vehicles/actions/{key}", {"outbox": "outbox1"}) for key in OF_OUTBOX]
    tests = [(f"publications/vehicles/connections/{each}", {}) for each in ("context_broker", "kafka_default")]
    return [*of_publication, *of_outbox, *tests]


@pytest.mark.parametrize(("path", "query"), addresses())
def test_a_page_says_what_an_action_means_and_asks_why(browser, path, query):
    text = browser.get(path, **query).text
    assert token_in(text)
    assert 'name="reason"' in text
    assert "<script>alert" not in text
    assert browser.api.asked == []


@pytest.mark.parametrize(("path", "query"), addresses())
def test_who_may_only_read_neither_sees_nor_does_it(browser, home, path, query):
    shown = browser.get("publications/vehicles", "eve").text
    assert not [part for part in ("/actions/", "/connections/", "<form") if part in shown]
    answers = [browser.get(path, "eve", **query), browser.post(path, "eve", reason="why", token="0" * 64, **query)]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert "Airflow's roles decide".replace("'", "&#39;") in answers[1].text
    assert (browser.api.asked, home.publication("vehicles").outboxes.status("outbox1").status) == ([], "approved")


@pytest.mark.parametrize(("path", "query"), addresses())
def test_who_is_not_logged_in_gets_the_login_and_others_nothing(browser, path, query):
    answers = [browser.get(path, None, **query), browser.post(path, None, reason="why", **query)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert "/api/v2/auth/login" in answers[1].headers["location"]
    assert browser.get(path, "ben", **query).status_code == 404
    assert browser.api.asked == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://elsewhere"},
        {"origin": "null"},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": ORIGIN, "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
@pytest.mark.parametrize(("path", "query"), addresses())
def test_a_form_of_another_site_does_nothing(browser, home, headers, path, query):
    token = token_in(browser.get(path, **query).text)
    answer = browser.post(path, headers=headers, token=token, reason="why", **query)
    assert answer.status_code == 403
    assert "did not come from a page of Contexture" in answer.text
    assert (browser.api.asked, home.publication("vehicles").outboxes.status("outbox1").status) == ([], "approved")


def test_a_form_shown_to_another_user_for_another_action_or_long_ago_does_nothing(browser, monkeypatch):
    other = token_in(browser.get("publications/vehicles/actions/resume").text)
    own = token_in(browser.get(RUN).text)
    for token in (other, "", "0" * 64, "é"):
        answer = browser.post(RUN, token=token, reason="why")
        assert answer.status_code == 409
        assert "was shown too long ago" in answer.text
        assert 'value="why"' in answer.text
    monkeypatch.setattr("contexture_airflow.web.forms.time.time", lambda: 4_000_000_000.0)
    assert browser.post(RUN, token=own, reason="why").status_code == 409
    assert browser.api.asked == []


def test_what_was_ticked_stays_so_when_the_form_comes_back(browser):
    shown = browser.post(RUN, token="0" * 64, reason="why", dry_run="yes")
    assert (shown.status_code, 'name="dry_run" value="yes" checked' in shown.text) == (409, True)
    assert "checked" not in browser.get(RUN).text
    path = "publications/vehicles/actions/retry-quarantine"
    shown = browser.post(path, token="0" * 64, reason="why", outbox="outbox1", rule="number-string")
    assert (shown.status_code, 'value="number-string" checked' in shown.text) == (409, True)


@pytest.mark.parametrize("reason", ["", "   "])
def test_nothing_is_done_without_a_reason(browser, reason):
    answer = browser.confirm(RUN, reason=reason)
    assert answer.status_code == 409
    assert "enter a reason" in answer.text
    assert browser.api.asked == []


@pytest.mark.parametrize("path", ["publications/vehicles/actions/none", "publications/vehicles/actions/abandon-outbox"])
def test_what_is_no_action_is_not_found(browser, path):
    assert [browser.get(path, **query).status_code for query in ({}, {"outbox": "none"})] == [404, 404]


def test_what_is_too_long_or_no_form_is_refused(browser):
    assert browser.post(RUN, reason="x" * 100_000).status_code == 413


def test_run_now_starts_a_run_as_the_user_and_says_so(browser, home):
    answer = browser.confirm(RUN, reason=f"look {ATTACK}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/contexture/publications/vehicles?done=run")
    conf = {"reason": f"look {ATTACK}"}
    [(_, _, body, _)] = browser.api.asked
    run = body.pop("dag_run_id")
    assert re.fullmatch(r"manual__20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ_[0-9a-f]{8}", run)
    assert body == {"logical_date": None, "conf": conf, "note": conf["reason"]}
    assert browser.api.asked == [("POST", "/api/v2/dags/publish_vehicles/dagRuns", body, "ana")]
    assert actions(home) == [("ana", "Run now", "", f"look {ATTACK}", "a run was started", run)]
    text = browser.get("publications/vehicles", done="run").text
    assert "Run now: done." in text
    assert "look &#34;&gt;&lt;script&gt;" in text
    assert "<script>alert" not in text
    assert f'href="/dags/publish_vehicles/runs/{quote(run)}"' in text


@pytest.mark.parametrize("action", ["run", "resynchronise", "verify"])
def test_a_form_that_is_sent_twice_starts_one_run(browser, home, action):
    path = f"publications/vehicles/actions/{action}"
    fields = hidden_in(browser.get(path).text)
    answers = [browser.post(path, reason="pressed twice", **fields) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert len(browser.api.runs) == len(actions(home)) == 1
    assert browser.confirm(path).status_code == 303
    assert len(browser.api.runs) == 2


def test_what_is_started_while_the_publication_is_suspended_waits_and_says_so(home):
    browser = Browser("vehicles", paused=["vehicles"])
    waits = "The publication is suspended: the run waits until it is resumed."
    assert waits in browser.get(RUN).text
    assert "would be left out: resume it first" in browser.get("publications/vehicles/actions/resynchronise").text
    assert "suspended: the run" not in browser.get("publications/vehicles/actions/resume").text
    assert browser.confirm(RUN).status_code == 303
    assert browser.confirm("publications/vehicles/actions/retry-outbox", outbox="outbox1").status_code == 303
    waiting = "; the publication is suspended, and the run waits until it is resumed"
    assert sorted(outcome for *_, outcome, _ in actions(home)) == [
        f"1 failed send is cleared, and a run was started that sends it first{waiting}",
        f"a run was started{waiting}",
    ]
    assert waits not in Browser("vehicles").get(RUN).text


@pytest.mark.parametrize("action", ["run", "resynchronise", "verify"])
def test_nothing_is_started_of_a_publication_whose_file_is_no_longer_good(browser, home, action):
    (Path(home.root).parent / "publications" / "vehicles.yaml").write_text("name: [")
    answer = browser.confirm(f"publications/vehicles/actions/{action}")
    assert (answer.status_code, browser.api.asked) == (409, [])
    assert "there is no valid publication file of this name" in answer.text
    assert browser.confirm("publications/vehicles/actions/suspend").status_code == 303
    assert browser.confirm("publications/vehicles/actions/abandon-outbox", outbox="outbox1").status_code == 303


def test_a_suspended_publication_is_not_said_to_be_resynchronised(home):
    browser = Browser("vehicles", paused=["vehicles"])
    answer = browser.confirm("publications/vehicles/actions/resynchronise")
    assert (answer.status_code, browser.api.asked, actions(home)) == (409, [], [])
    assert "the publication is suspended, and would be left out. Next: resume it first" in answer.text
    assert 'value="as agreed"' in answer.text


def test_the_page_says_what_came_of_what_its_reader_did_just_now_and_nothing_else(browser):
    assert "done." not in browser.get("publications/vehicles", done="suspend").text
    browser.confirm("publications/vehicles/actions/suspend")
    text = browser.get("publications/vehicles", done="suspend").text
    assert "Suspend: done. Outcome: its DAG is paused: no run" in text
    assert "done." not in browser.get("publications/vehicles", "eve", done="suspend").text
    assert "done." not in browser.get("publications/vehicles", done="resume").text


def test_a_reason_is_one_line_whatever_was_sent(browser, home):
    assert browser.confirm(RUN, reason="a\0b\r\nc\x1b[31m\u202ed").status_code == 303
    assert actions(home)[0][3] == "a b  c [31m d"


def test_suspending_says_that_a_run_on_its_way_waits(browser, home):
    path = "publications/vehicles/actions/suspend"
    assert "the tasks that run now continue to their end, and the rest waits until then" in browser.get(path).text
    browser.confirm(path)
    assert actions(home)[0][4] == (
        "its DAG is paused: no run begins, and one that has begun pauses when its running tasks end"
    )


def test_a_replica_is_not_said_to_be_verified_by_a_dag_that_is_paused(browser, home):
    browser.api.paused = {"verify_replica"}
    answer = browser.confirm("publications/vehicles/actions/verify")
    assert answer.status_code == 409
    assert "airflow dags unpause verify_replica" in answer.text
    assert (browser.api.runs, actions(home)) == (set(), [])


@pytest.mark.parametrize(
    ("action", "form", "conf"),
    [
        ("run", {"dry_run": "yes"}, {"dry_run": True}),
        ("confirm-shrink", {}, {"confirm_shrink": True}),
    ],
)
def test_a_run_gets_the_params_that_were_confirmed(browser, home, action, form, conf):
    held_up(home, 3)
    assert browser.confirm(f"publications/vehicles/actions/{action}", **form).status_code == 303
    [(_, _, body, _)] = browser.api.asked
    assert body["conf"] == {**conf, "reason": "as agreed"}


def test_resynchronise_asks_the_same_as_the_command_line(browser, home):
    assert browser.confirm("publications/vehicles/actions/resynchronise").status_code == 303
    conf = {"publications": ["vehicles"], "mode": "full", "reason": "as agreed"}
    assert [(method, path) for method, path, _, _ in browser.api.asked] == [
        ("GET", "/api/v2/dags/resynchronise"),
        ("GET", "/api/v2/dags/publish_vehicles"),
        ("POST", "/api/v2/dags/resynchronise/dagRuns"),
    ]
    assert browser.api.asked[-1][2]["conf"] == conf
    browser.api.paused = {"publish_vehicles"}
    browser.confirm("publications/vehicles/actions/resynchronise")
    assert sorted("left out" in outcome for *_, outcome, _ in actions(home)) == [False, True]
    browser.api.paused = {"resynchronise"}
    assert browser.confirm("publications/vehicles/actions/resynchronise").status_code == 409


@pytest.mark.parametrize(("action", "paused"), [("suspend", True), ("resume", False)])
def test_suspend_and_resume_pause_the_dag_with_the_reason_in_the_audit_log(browser, action, paused):
    assert browser.confirm(f"publications/vehicles/actions/{action}").status_code == 303
    address = "/api/v2/dags/publish_vehicles?reason=as+agreed"
    assert [(m, a.replace("%20", "+"), b, u) for m, a, b, u in browser.api.asked] == [
        ("PATCH", address, {"is_paused": paused}, "ana")
    ]


def test_an_outbox_is_sent_again_at_once(browser, home):
    assert browser.confirm("publications/vehicles/actions/retry-outbox", outbox="outbox1").status_code == 303
    assert home.publication("vehicles").attempts.of_outbox("outbox1") == ()
    assert [path for _, path, _, _ in browser.api.asked] == ["/api/v2/dags/publish_vehicles/dagRuns"]
    assert actions(home)[0][2:5] == (
        "outbox1",
        "as agreed",
        "1 failed send is cleared, and a run was started that sends it first",
    )


def test_an_outbox_of_a_backfill_is_left_to_its_own_run_which_alone_sends_it(browser, home):
    outbox(home, publication(), 2, [records("a")], mode="backfill", interval=(NOON, NOON + timedelta(hours=1)))
    home.publication("vehicles").outboxes.set_status("outbox2", "approved", reason="good")
    home.publication("vehicles").attempts.keep(
        failed_send("outbox2", shard=0, state="stopped", next_at=None, message="away")
    )
    path = "publications/vehicles/actions/retry-outbox"
    shown = browser.get(path, outbox="outbox2").text
    assert "its own run alone sends it, when its publish task is cleared" in shown
    assert browser.confirm(path, outbox="outbox2").status_code == 303
    assert (browser.api.asked, home.publication("vehicles").attempts.of_outbox("outbox2")) == ([], ())
    assert actions(home)[0][4] == (
        "1 failed send is cleared; now clear the publish task of its backfill in publish_vehicles: no other run sends "
        "it"
    )


def test_a_damaged_outbox_can_be_abandoned(browser, home):
    home.write(PublicationPaths("vehicles").manifest("outbox1"), b"")
    path = "publications/vehicles/actions/abandon-outbox"
    assert "its manifest cannot be read" in browser.get(path, outbox="outbox1").text
    assert browser.confirm(path, outbox="outbox1").status_code == 303
    assert home.publication("vehicles").outboxes.status("outbox1").status == "abandoned"
    assert home.publication("vehicles").state.pointer().full_run_due == "outbox outbox1 was abandoned: as agreed (ana)"


def test_an_outbox_is_abandoned_with_who_and_why_and_a_full_run_is_owed(browser, home):
    path = "publications/vehicles/actions/abandon-outbox"
    assert "shard 0" in browser.get(path, outbox="outbox1").text
    assert browser.confirm(path, outbox="outbox1").status_code == 303
    step = home.publication("vehicles").outboxes.status("outbox1").steps[-1]
    assert (step.status, step.reason) == ("abandoned", "as agreed (ana)")
    assert home.publication("vehicles").state.pointer().full_run_due == "outbox outbox1 was abandoned: as agreed (ana)"
    assert browser.api.asked == []
    assert browser.confirm(path, outbox="outbox1").status_code == 303
    again = browser.confirm("publications/vehicles/actions/retry-outbox", outbox="outbox1")
    assert again.status_code == 409
    assert "is abandoned, and only an approved one is sent" in again.text


@pytest.mark.parametrize("name", ["none", "../outbox1", "..", "a/b"])
def test_an_outbox_that_is_not_there_is_an_error(browser, name):
    for key in OF_OUTBOX:
        assert browser.get(f"publications/vehicles/actions/{key}", outbox=name).status_code == 404


def test_quarantined_events_are_shown_without_content_and_tried_again_by_rule(browser):
    listed = browser.get("publications/vehicles/quarantine").text
    assert "/4wheels car&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt; car" in listed
    assert "2 events are quarantined" in listed
    assert (
        "2 events of outbox <code>outbox1</code> are quarantined"
        in browser.get("publications/vehicles/actions/retry-quarantine", outbox="outbox1").text
    )
    assert "secret-plate" not in listed
    assert "the message of its rule, which may quote the beginning of a value" in listed
    assert "retry-quarantine?outbox=outbox1" in listed
    assert "retry-quarantine" not in browser.get("publications/vehicles/quarantine", "eve").text
    path = "publications/vehicles/actions/retry-quarantine"
    assert browser.confirm(path, outbox="outbox1", rule="number-string").status_code == 303
    conf = {"retry_quarantine": "outbox1", "retry_rules": ["number-string"], "reason": "as agreed"}
    assert browser.api.asked[-1][2]["conf"] == conf
    refused = browser.confirm(path, outbox="outbox1", rule="none")
    assert refused.status_code == 409
    assert "quarantined nothing by none" in refused.text


def held_up(home: Home, count: int, *, run: str = "run1") -> None:
    """A run that the guard against shrinking has stopped."""
    store = RunTables.of_home(home.root)
    assert store is not None
    store.insert_run("vehicles", run, run_id=f"manual__{run}", mode="changes", sequence=2)
    store.set_run_failed("vehicles", f"manual__{run}", task="stage", message=f"{count} identities are missing")
    store.close()
    home.publication("vehicles").run(run).write_shrink_report(
        ShrinkReport.of([b'["a"]', f"car{ATTACK}"], count=count, held=4, limit=1)
    )


def begun(home: Home, run: str, *, ends: bool, mode: str = "changes") -> None:
    store = RunTables.of_home(home.root)
    assert store is not None
    store.insert_run("vehicles", run, run_id=f"scheduled__{run}", mode=mode, sequence=3)
    if ends:
        store.set_run_succeeded("vehicles", run)
    store.close()


SHRINK = "publications/vehicles/actions/confirm-shrink"


def test_other_deletions_than_those_that_were_shown_are_not_confirmed(browser, home):
    held_up(home, 3)
    shown = hidden_in(browser.get(SHRINK).text)
    held_up(home, 4, run="run2")
    answer = browser.post(SHRINK, reason="they were sold", **shown)
    assert (answer.status_code, browser.api.asked) == (409, [])
    assert "4 of 4 identities were gone" in answer.text
    assert browser.post(SHRINK, reason="they were sold", **hidden_in(answer.text)).status_code == 303


def test_where_no_deletions_are_held_up_none_are_confirmed(browser, home):
    held_up(home, 3)
    begun(home, "run2", ends=True)
    answer = browser.confirm(SHRINK)
    assert (answer.status_code, browser.api.asked) == (409, [])
    assert "no deletions wait for confirmation" in answer.text


@pytest.mark.parametrize(("ends", "mode"), [(False, "changes"), (True, "backfill")])
def test_deletions_can_be_confirmed_while_the_next_run_is_on_its_way_or_after_a_backfill(browser, home, ends, mode):
    held_up(home, 3)
    begun(home, "run2", ends=ends, mode=mode)
    assert "3 of 4 identities were gone" in browser.get(SHRINK).text
    assert browser.confirm(SHRINK).status_code == 303


def test_what_a_shrink_would_delete_is_shown_before_it_is_confirmed(browser, home):
    held_up(home, 3)
    assert "actions/confirm-shrink" in browser.get("publications/vehicles").text
    text = browser.get(SHRINK).text
    assert "3 of 4 identities were gone" in text
    assert "the first 2 of them" in text
    assert "<code>[&#34;a&#34;]</code>" in text
    assert "<script>alert" not in text


def test_the_replica_is_verified_where_there_is_a_dag_for_it(browser, home):
    assert "actions/verify" in browser.get("publications/vehicles").text
    assert "actions/verify" not in Browser("vehicles").get("publications/vehicles").text
    assert browser.confirm("publications/vehicles/actions/verify").status_code == 303
    assert browser.api.asked[-1][1] == "/api/v2/dags/verify_replica/dagRuns"


@pytest.mark.parametrize(
    ("status", "shown", "words"),
    [
        (403, 403, "Airflow does not allow you to do this with publish_vehicles"),
        (404, 409, "Airflow has no DAG publish_vehicles"),
        (400, 409, "Airflow responded with 400"),
        (500, 409, "Airflow responded with 500"),
    ],
)
def test_what_airflow_refuses_is_shown_and_not_stored_as_done(browser, home, status, shown, words):
    browser.api.status = status
    answer = browser.confirm(RUN)
    assert answer.status_code == shown
    assert words in answer.text
    assert actions(home) == []


def test_tables_that_are_away_stop_no_action(browser, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_DATABASE", "nosuchdriver://contexture:hunter2@127.0.0.1:1/none")
    other = Browser("vehicles")
    assert other.confirm(RUN).status_code == 303
    assert len(other.api.asked) == 1
    text = other.get("publications/vehicles", done="run").text
    assert "Run now: done. Its outcome was not stored, because the operational tables do not answer" in text
    assert "The list of actions below keeps it" not in text


def test_a_connection_is_tested_step_by_step(browser, home, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_CONTEXT_BROKER", '{"conn_type": "http", "host": "127.0.0.1", "port": 9}')
    path = "publications/vehicles/connections/context_broker"
    stale = browser.post(path, token="0" * 64, reason="before the night")
    assert (stale.status_code, 'value="before the night"' in stale.text) == (409, True)
    answer = browser.confirm(path)
    assert answer.status_code == 200
    assert answer.headers["content-encoding"] == "identity"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert ">failed</span> probe" in answer.text
    assert "The test has ended." in answer.text
    assert actions(home)[0][:5] == ("ana", "Test connection", "context_broker", "as agreed", "failed: probe")


def test_a_connection_that_is_not_there_or_not_the_publication_s_is_an_error(browser, home):
    answer = browser.confirm("publications/vehicles/connections/kafka_default")
    assert "there is no Airflow connection" in answer.text
    assert "The test has ended." in answer.text
    assert browser.get("publications/vehicles/connections/other").status_code == 404
    assert actions(home)[0][4] == "it cannot be used"


def test_each_step_of_a_test_is_shown_when_it_is_done():
    from threading import Event

    from contexture.operations.actions.source_check import CheckOutcome, CheckStep

    first = CheckStep(name="one", passed=True, detail="well", seconds=0.1)
    looked = Event()

    class Slow(connections.ConnectionCheckStream):
        def _outcome(self) -> CheckOutcome:
            self._steps.put(first)
            assert looked.wait(10)
            return CheckOutcome(connection="c", kind="http", target="t", unreachable=False, steps=(first,))

    calls = OutsideCalls(most=1)
    steps = Slow(SilentVisitor(calls), publication(), "c", "why").steps()  # type: ignore[arg-type]
    assert next(steps) == first
    with pytest.raises(RetriableError, match="waiting for brokers or sources"):
        calls.begin()
    looked.set()
    assert list(steps) == []
    calls.begin()


def test_no_more_tests_run_at_once_than_calls_may_wait():
    calls = OutsideCalls(most=1)
    calls.begin()
    visitor = SilentVisitor(calls)
    [step] = connections.ConnectionCheckStream(visitor, publication(), "c", "why").steps()  # type: ignore[arg-type]
    assert (step.passed, step.detail.split(".")[0]) == (
        False,
        "other users of the page are waiting for brokers or sources now",
    )


class SilentVisitor:
    """A visitor of whom nothing is recorded."""

    def __init__(self, calls: OutsideCalls) -> None:
        self.installation = SimpleNamespace(outside_calls=calls)

    def record_action(self, *values: Any, **more: Any) -> None: ...
