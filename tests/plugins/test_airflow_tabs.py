"""Contexture's tabs on a DAG, a run and a task of Airflow."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.outboxes import outbox, publication, records  # noqa: E402
from builders.page_browser import Browser  # noqa: E402
from contexture.monitoring import RunTables  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.publication_store import run_name  # noqa: E402
from contexture_airflow.web.asgi import TABS  # noqa: E402

RUN_ID = "manual__2026-03-01T12:00:00+00:00"


def open_tab(browser: Browser, destination: str, user: str | None = "ana", **ids: object) -> Any:
    """Opens a tab with the ids that Airflow's interface puts in."""
    [href] = [each["href"] for each in TABS if each["destination"] == destination]
    for name, value in ids.items():
        href = href.replace(f"{{{name}}}", quote(str(value), safe=""))
    path, _, query = href.removeprefix("/contexture/").partition("?")
    return browser.get(path, user=user, **dict(parse_qsl(query)))


def publish(home: Home, tables: RunTables) -> str:
    """A run that sends two records; returns its outbox."""
    manifest = outbox(home, publication(), 1, [records("a", "b")], run=run_name(RUN_ID))
    tables.insert_run("vehicles", run_name(RUN_ID), run_id=RUN_ID, mode="full", sequence=1)
    tables.set_run_outbox("vehicles", run_name(RUN_ID), outbox=manifest.outbox)
    return manifest.outbox


def test_there_is_a_tab_on_a_dag_a_run_and_a_task() -> None:
    assert [each["destination"] for each in TABS] == ["dag", "dag_run", "task_instance"]
    assert len({each["url_route"] for each in TABS}) == 3
    json.dumps(TABS)


def test_the_tab_of_a_dag_is_the_page_of_its_publication(browser: Browser) -> None:
    answer = open_tab(browser, "dag", DAG_ID="publish_vehicles")
    assert (answer.status_code, answer.headers["location"]) == (303, "/contexture/publications/vehicles")


@pytest.mark.parametrize("dag", ["of_others", "publish_", "publish_unknown", "publish_<script>"])
def test_the_tab_of_any_other_dag_leads_to_all_publications(browser: Browser, dag: str) -> None:
    answer = open_tab(browser, "dag", DAG_ID=dag)
    assert answer.status_code == 200
    assert "publishes nothing through Contexture that you may see" in answer.text
    assert "<script>publish" not in answer.text


def test_a_publication_that_the_visitor_may_not_see_looks_like_any_other_dag(browser: Browser) -> None:
    answer = open_tab(browser, "dag_run", DAG_ID="publish_vehicles", RUN_ID=RUN_ID, user="ben")
    assert "publishes nothing through Contexture that you may see" in answer.text


def test_the_tab_of_a_run_shows_what_it_read_and_sent(browser: Browser, home: Home, tables: RunTables) -> None:
    sent = publish(home, tables)
    answer = open_tab(browser, "dag_run", DAG_ID="publish_vehicles", RUN_ID=RUN_ID)
    assert answer.status_code == 200
    assert "2 records to 1 topic; 0 quarantined" in answer.text
    assert f"/contexture/publications/vehicles/reports/{sent}/index.html" in answer.text
    assert f"/contexture/publications/vehicles/transactions?outbox={sent}" in answer.text


def test_a_run_that_failed_before_it_had_an_outbox_shows_its_error(browser: Browser, tables: RunTables) -> None:
    tables.insert_run("vehicles", run_name(RUN_ID), run_id=RUN_ID, mode="full", sequence=1)
    tables.set_run_failed("vehicles", RUN_ID, task="stage", message="the context broker did not respond")
    text = open_tab(browser, "dag_run", DAG_ID="publish_vehicles", RUN_ID=RUN_ID).text
    assert "the context broker did not respond" in text
    assert "This run has prepared no outbox" in text


def test_the_tab_of_the_quality_gate_is_the_report_of_its_run(browser: Browser, home: Home, tables: RunTables) -> None:
    sent = publish(home, tables)
    ids = {"DAG_ID": "publish_vehicles", "RUN_ID": RUN_ID, "TASK_ID": "quality_gate", "MAP_INDEX": -1}
    assert open_tab(browser, "task_instance", **ids).headers["location"] == (
        f"/contexture/publications/vehicles/reports/{sent}/index.html"
    )


def test_the_tab_of_a_shard_lists_its_transactions(browser: Browser, home: Home, tables: RunTables) -> None:
    sent = publish(home, tables)
    ids = {"DAG_ID": "publish_vehicles", "RUN_ID": RUN_ID, "TASK_ID": "publish", "MAP_INDEX": 0}
    assert open_tab(browser, "task_instance", **ids).headers["location"] == (
        f"/contexture/publications/vehicles/transactions?outbox={sent}&shard=0"
    )


def test_who_is_not_logged_in_gets_airflows_login(browser: Browser) -> None:
    assert open_tab(browser, "dag", DAG_ID="publish_vehicles", user=None).status_code == 303
