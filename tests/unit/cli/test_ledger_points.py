"""`contexture doctor` names ledgers that have fewer replicas than they need."""

from __future__ import annotations

import pytest

from builders.outboxes import publication
from contexture.errors import RetriableError
from contexture.operations.actions.doctor import ledger_points, run_checks
from contexture.sending.ledger_copies import LedgerCopies

CONNECTION = publication().publish.connection


@pytest.fixture(autouse=True)
def connection(monkeypatch):
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", '{"conn_type": "kafka", "host": "127.0.0.1"}')


def point(copies_of):
    (found,) = run_checks(ledger_points([publication()], timeout_seconds=1.0, copies_of=copies_of))
    return found


def test_a_ledger_with_too_few_replicas_is_doubtful_and_names_the_remedy():
    found = point(lambda publication: LedgerCopies(f"contexture.ledger.{publication.name}", 1, 1, 3))
    assert (found.name, found.verdict) == (f"ledgers over {CONNECTION}", "warning")
    assert found.detail == "the ledger contexture.ledger.vehicles has 1 replica of 3 and min.insync.replicas 1 of 2"
    assert "kafka-reassign-partitions" in found.remedy


@pytest.mark.parametrize("copies", [None, LedgerCopies("contexture.ledger.vehicles", 3, 2, 3)])
def test_a_ledger_that_is_safe_or_not_there_yet_is_good(copies):
    assert point(lambda publication: copies).verdict == "ok"


def test_brokers_that_are_away_are_left_to_the_connections_point():
    def away(publication):
        raise RetriableError("the brokers are away", next_step="start them")

    assert point(away).verdict == "skipped"


def test_a_connection_that_is_not_set_here_has_no_point(monkeypatch):
    monkeypatch.delenv(f"AIRFLOW_CONN_{CONNECTION.upper()}")
    assert list(ledger_points([publication()], timeout_seconds=1.0)) == []
