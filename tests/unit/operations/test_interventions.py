"""What people do is the same from the command line and from the page, and is kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from builders.outboxes import NOON
from contexture.errors import ConfigurationError
from contexture.monitoring import RunTables
from contexture.monitoring.rows import InterventionRow
from contexture.operations.actions.interventions import resume, resynchronise, run_now, suspend


class FakeDags:
    """Airflow; keeps which runs it was asked to start."""

    def __init__(self, *paused: str) -> None:
        self.paused = paused
        self.started: list[tuple[str, Mapping[str, object]]] = []
        self.suspensions: list[tuple[str, bool, str]] = []

    def is_paused(self, dag_id: str) -> bool:
        return dag_id in self.paused

    def trigger(self, dag_id: str, conf: Mapping[str, object]) -> str:
        self.started.append((dag_id, conf))
        return f"manual__{len(self.started)}"

    def pause(self, dag_id: str, paused: bool, reason: str) -> None:
        self.suspensions.append((dag_id, paused, reason))


def row(number: int, **changes: object) -> InterventionRow:
    given: dict[str, object] = {
        "id": f"id{number}",
        "publication": "vehicles",
        "at": NOON + timedelta(minutes=number),
        "who": "ana",
        "action": "Run now",
        "subject": "",
        "reason": "why",
        "outcome": "a run was started",
        "run_id": None,
    }
    return InterventionRow(**(given | changes))  # type: ignore[arg-type]


def test_a_run_is_started_with_its_reason_and_what_differs_from_its_form() -> None:
    dags = FakeDags()
    assert run_now(dags, "vehicles", "why", confirm_shrink=True) == "manual__1"
    assert dags.started == [("publish_vehicles", {"confirm_shrink": True, "reason": "why"})]


def test_paused_publications_are_named_and_asked_for_all_the_same() -> None:
    dags = FakeDags("publish_buses")
    started = resynchronise(dags, ["cars", "buses", "cars"], mode="full", reason="why")
    assert (started.publications, started.paused) == (("cars", "buses"), ("buses",))
    assert dags.started == [("resynchronise", {"publications": ["cars", "buses"], "mode": "full", "reason": "why"})]


def test_a_publication_is_suspended_and_resumed_with_a_reason() -> None:
    dags = FakeDags()
    assert suspend(dags, "cars", "repair").startswith("its DAG is paused: no run begins")
    assert resume(dags, "cars", "repaired") == "its DAG is no longer paused"
    assert dags.suspensions == [("publish_cars", True, "repair"), ("publish_cars", False, "repaired")]
    with pytest.raises(ConfigurationError, match="a reason is required"):
        suspend(dags, "cars", " ")


def test_without_a_reason_or_the_dag_nothing_is_started() -> None:
    dags = FakeDags("resynchronise")
    with pytest.raises(ConfigurationError, match="is paused"):
        resynchronise(dags, ["cars"], mode="full", reason="why")
    with pytest.raises(ConfigurationError, match="a reason is required"):
        run_now(dags, "cars", " ")
    assert dags.started == []


def test_what_people_did_is_listed_the_latest_first_and_removed_with_the_rest(tmp_path) -> None:
    store = RunTables(f"sqlite:///{tmp_path}/operations.sqlite")
    for each in (row(1), row(3, run_id="manual__1"), row(2, publication="buses")):
        store.insert_action(each)
    assert store.interventions("vehicles") == [row(3, run_id="manual__1"), row(1)]
    assert [each.id for each in store.interventions(limit=2)] == ["id3", "id2"]
    assert store.delete_before("vehicles", before=NOON + timedelta(minutes=2)) == 2, "the row and its event"
    assert store.interventions("vehicles") == [row(3, run_id="manual__1")]
