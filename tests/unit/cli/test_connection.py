"""`contexture connection test`: what works is said step by step, and no secret is shown."""

from __future__ import annotations

import json

import pytest

from contexture.sandbox.context_broker import TestBroker


@pytest.fixture
def connect(monkeypatch):
    def set_variable(**fields: object) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_TRIED", json.dumps(fields))

    return set_variable


def test_a_context_broker_that_answers_works(contexture, connect):
    with TestBroker() as broker:
        host, port = broker.url.removeprefix("http://").split(":")
        connect(conn_type="http", host=host, port=int(port), password="hunter2", login="me")
        done = contexture("connection", "test", "tried")
        assert done.code == 0
        assert done.out.startswith(f"tried: {broker.url}\n  probe: works (")
        assert "hunter2" not in done.out


def test_a_context_broker_that_is_away_gives_exit_code_3(contexture, connect):
    connect(conn_type="http", host="127.0.0.1", port=9)
    done = contexture("connection", "test", "tried", "--json")
    assert done.code == 3
    found = json.loads(done.out)
    assert (found["unreachable"], found["steps"][0]["name"], found["steps"][0]["passed"]) == (True, "probe", False)


def test_a_kafka_that_is_away_gives_exit_code_3_and_skips_the_other_steps(contexture, connect):
    extra = {"bootstrap.servers": "127.0.0.1:9", "sasl.password": "hunter2", "sasl.username": "me"}
    connect(conn_type="kafka", extra=extra)
    done = contexture("connection", "test", "tried", "--timeout", "0.5")
    assert done.code == 3
    assert done.out.startswith("tried: PLAINTEXT://me@127.0.0.1:9\n  reach: failed (")
    assert "  transactions: not tried" in done.out
    assert "hunter2" not in done.out


def test_a_kafka_connection_that_can_not_be_used_says_why(contexture, connect):
    connect(conn_type="kafka", extra={"acks": "1"})
    done = contexture("connection", "test", "tried")
    assert done.code == 2
    assert "bootstrap.servers: give the brokers as host:port,host:port" in done.err


def test_a_connection_that_is_not_in_the_environment_says_what_to_set(contexture, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_TRIED", raising=False)
    done = contexture("connection", "test", "tried")
    assert done.code == 2
    assert "set AIRFLOW_CONN_TRIED as Airflow has it" in done.err


def test_another_type_is_refused(contexture, connect):
    connect(conn_type="ssh", host="127.0.0.1")
    done = contexture("connection", "test", "tried")
    assert done.code == 2
    assert "connection 'tried' has the type 'ssh'. Next: give it one of the types kafka, http, https" in done.err


def test_which_context_broker_it_is_is_shown(contexture, connect):
    with TestBroker() as broker:
        broker.speak_linked_data("scorpio")
        connect(conn_type="http", host=broker.url)
        done = contexture("connection", "test", "tried", "--service", "city")
    assert done.code == 0
    assert ": scorpio, asked by source.api ngsi-ld\n" in done.out


def test_an_orion_is_asked_as_one(contexture, connect):
    with TestBroker() as broker:
        connect(conn_type="http", host=broker.url)
        done = contexture("connection", "test", "tried", "--json")
    assert [step["detail"] for step in json.loads(done.out)["steps"]][1] == "orion, asked by source.api ngsiv2"


def test_a_broker_that_hides_which_one_it_is_may_speak_either(contexture, connect):
    with TestBroker() as broker:
        broker.speak_linked_data("stellio")
        broker.faults.fail(status=404, path="/actuator")
        connect(conn_type="http", host=broker.url)
        done = contexture("connection", "test", "tried", "--json")
    assert [step["detail"] for step in json.loads(done.out)["steps"]][1] == "unknown, asked by source.api ngsi-ld"
