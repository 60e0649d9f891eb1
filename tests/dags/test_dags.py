"""The DAGs as Airflow sees them."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.airflow

PUBLISH_EDGES = [
    "settle -> stage",
    "stage -> conclude",
    "stage -> publish",
    "stage -> quality_gate",
    "quality_gate -> publish",
    "publish -> conclude",
]


@pytest.fixture
def found(parsed: Any) -> Any:
    """Two good publications, one that is only started by hand, and one bad file."""
    return parsed["all"]


def test_there_is_one_dag_for_each_good_publication_and_those_for_operations(found: Any) -> None:
    publications = ["publish_audit", "publish_bikes", "publish_by-hand", "publish_vehicles"]
    assert sorted(found["dags"]) == [*publications, "resynchronise", "verify_replica"]


def test_a_bad_file_shows_as_one_import_error_and_hides_no_other(found: Any) -> None:
    assert list(found["errors"]) == ["publication_errors.py"]
    error = found["errors"]["publication_errors.py"]
    assert "broken.yaml:2" in error
    assert "types" in error


def test_the_graph_of_a_publication(found: Any) -> None:
    assert found["dags"]["publish_vehicles"]["edges"] == PUBLISH_EDGES


def test_what_contexture_did_is_published_in_the_same_way_without_spark(found: Any) -> None:
    audit = found["dags"]["publish_audit"]
    assert audit["edges"] == PUBLISH_EDGES
    assert audit["tasks"]["stage"]["pool"] == "contexture_source"
    assert "operations" in audit["tags"]


def test_the_graph_of_resynchronise(found: Any) -> None:
    assert found["dags"]["resynchronise"]["edges"] == ["choose -> start"]


def test_topics_are_verified_in_the_brokers_pool_and_only_by_hand(found: Any) -> None:
    dag = found["dags"]["verify_replica"]

    assert dag["edges"] == ["choose -> verify"]
    assert dag["timetable"] == "NullTimetable"
    assert dag["tasks"]["verify"]["mapped"]
    assert dag["tasks"]["verify"]["pool"] == "contexture_broker"
    assert list(dag["params"]) == ["publications", "against", "reason"]


def test_topics_are_verified_by_a_schedule_that_is_set(parsed: Any) -> None:
    assert parsed["scheduled"]["dags"]["verify_replica"]["timetable"] == "CronTriggerTimetable"


def test_every_dag_is_documented_tagged_and_runs_once_at_a_time(found: Any) -> None:
    for dag_id, dag in found["dags"].items():
        assert "red" in dag["doc"].lower(), f"{dag_id} has a runbook"
        assert "contexture" in dag["tags"]
        assert dag["max_active_runs"] == 1
        assert dag["catchup"] is False
        assert dag["paused"] is None, "whether new DAGs are paused is Airflow's own setting"


def test_every_task_is_owned_documented_and_retried(found: Any) -> None:
    for dag_id, dag in found["dags"].items():
        for task_id, task in dag["tasks"].items():
            assert task["owner"] == "contexture", f"{dag_id}.{task_id}"
            assert task["doc"], f"{dag_id}.{task_id}"
            assert task["retries"] >= 1
            assert task["retry_policy"]


def test_people_hear_of_every_task_that_fails(found: Any) -> None:
    tasks = found["dags"]["publish_vehicles"]["tasks"]
    assert {task["failure_notifiers"][0] for task in tasks.values()} == {"FailureNotifier"}
    assert found["dags"]["verify_replica"]["tasks"]["verify"]["failure_notifiers"] == ["VerificationNotifier"]


def test_a_run_that_is_late_sends_an_alert_where_the_publication_wants_it(found: Any) -> None:
    minutes = {dag_id: dag["minutes"] for dag_id, dag in found["dags"].items()}
    assert {dag_id: wanted for dag_id, wanted in minutes.items() if wanted} == {"publish_by-hand": [30]}


def test_only_sends_that_are_tried_for_ever_have_no_limit(found: Any) -> None:
    hours = {task_id: task["hours"] for task_id, task in found["dags"]["publish_by-hand"]["tasks"].items()}
    assert hours == {"settle": None, "stage": 6, "quality_gate": 6, "publish": None, "conclude": 6}
    assert {task["hours"] for task in found["dags"]["publish_vehicles"]["tasks"].values()} == {6}


def test_pools_bound_spark_and_brokers(found: Any) -> None:
    tasks = found["dags"]["publish_vehicles"]["tasks"]
    assert {task_id: task["pool"] for task_id, task in tasks.items()} == {
        "settle": "contexture_broker",
        "stage": "contexture_spark",
        "quality_gate": "contexture_broker",
        "publish": "contexture_broker",
        "conclude": "contexture_broker",
    }


def test_publish_is_mapped_and_conclude_runs_without_it(found: Any) -> None:
    tasks = found["dags"]["publish_vehicles"]["tasks"]
    assert tasks["publish"]["mapped"]
    assert tasks["conclude"]["trigger_rule"] == "none_failed"


def test_a_schedule_has_data_intervals_for_backfills(found: Any) -> None:
    assert found["dags"]["publish_vehicles"]["timetable"] == "CronDataIntervalTimetable"
    assert found["dags"]["publish_by-hand"]["timetable"] == "NullTimetable"


def test_the_form_of_a_run(found: Any) -> None:
    params = found["dags"]["publish_vehicles"]["params"]
    assert list(params) == [
        "mode",
        "reason",
        "confirm_shrink",
        "republish",
        "retry_quarantine",
        "retry_rules",
        "replay_from",
        "replay_incomplete",
        "replay_outdated",
        "topic_prefix",
        "dry_run",
    ]
    assert params["mode"]["enum"] == ["auto", "full", "changes"]
    assert all(param["title"] and param["description"] for param in params.values())


def test_the_form_says_what_a_backfill_takes_from_it_only_with_a_tick(found: Any) -> None:
    params = found["dags"]["publish_vehicles"]["params"]
    listed = [
        name for name, param in params.items() if "*Override parameters on existing runs*" in param["description"]
    ]
    assert listed == ["replay_from", "replay_incomplete", "replay_outdated", "topic_prefix", "dry_run"]


def test_parsing_loads_nothing_heavy(found: Any) -> None:
    assert found["heavy"] == []


def test_parsing_opens_no_connection(parsed: Any) -> None:
    assert [scenario["connections"] for scenario in parsed.values()] == [0, 0, 0, 0, 0]


def test_a_task_reads_its_own_publication_only(parsed: Any) -> None:
    assert list(parsed["task"]["dags"]) == ["publish_p007"]


def test_two_hundred_publications_cost_a_few_times_what_as_many_bare_dags_cost(parsed: Any) -> None:
    assert len(parsed["many"]["dags"]) == len(parsed["bare"]["dags"]) == 200
    assert parsed["many"]["errors"] == parsed["bare"]["errors"] == {}
    # 7.5 times as much when this was written: 1.8 s. How fast the machine is says nothing about the code.
    assert parsed["many"]["seconds"] < 15 * parsed["bare"]["seconds"]
