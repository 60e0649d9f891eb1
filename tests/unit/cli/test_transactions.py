"""`contexture transactions`: what has become of each, for people and for scripts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from contexture.monitoring import RunTables, TransactionRow, TransactionStatus

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def filled(home):
    """Three transactions of two publications, a minute apart."""
    store = RunTables.of_home(str(home))
    for each in (
        row(0, TransactionStatus.SENT, dead_letters=2),
        row(1, TransactionStatus.BROKER_ERROR, message="no broker\x1b[2J"),
        row(2, TransactionStatus.SENT, "codes", outbox="feed00000002", source_transaction=4711, source_deletions=True),
    ):
        store.set_transaction(each, dead_letters=each.dead_letters)


def row(number, status, publication="vehicles", *, outbox="vehicles-run-12", **more):
    kept = {"source_transaction": None, "message": None, **more}
    at = NOON + timedelta(minutes=number)
    return TransactionRow(publication, outbox, 0, number, status, 10 * number, 100, 7, updated_at=at, **kept)


def numbers(done) -> list[int]:
    return [each["number"] for each in json.loads(done.out)["transactions"]]


def test_people_see_the_latest_first_with_its_state(filled, contexture):
    done = contexture("transactions")
    assert done.code == 0
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        "changed (UTC) publication status outbox shard number registry's records bytes",
        "2026-03-01 12:02:00 codes 1 sent feed00000002 0 2 4711 deletions 20 100",
        "2026-03-01 12:01:00 vehicles 3 broker error vehicles-run 0 1 10 100 no broker\\x1b[2J",
        "2026-03-01 12:00:00 vehicles 1 sent vehicles-run 0 0 0 100 2 dead letters",
    ]


def test_scripts_get_all_of_each(filled, home, contexture):
    document = json.loads(contexture("transactions", "codes", "--json").out)
    assert document == {
        "operational_tables": f"sqlite:///{home}/operations.sqlite",
        "publication": "codes",
        "has_more": False,
        "transactions": [
            {
                "publication": "codes",
                "outbox": "feed00000002",
                "shard": 0,
                "number": 2,
                "status": 1,
                "records": 20,
                "bytes": 100,
                "position": 7,
                "source_transaction": 4711,
                "message": None,
                "updated_at": "2026-03-01T12:02:00+00:00",
                "source_deletions": True,
                "dead_letters": 0,
                "status_name": "sent",
            }
        ],
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--status", "sent"], [2, 0]),
        (["--status", "3"], [1]),
        (["--status", "Broker_Error"], [1]),
        (["--outbox", "feed"], [2]),
        (["--shard", "1"], []),
        (["--registry-number", "4711"], [2]),
        (["--since", "2026-03-01T12:01"], [2, 1]),
        (["--since", "2026-03-01T12:01:00Z"], [2, 1]),
        (["--since", "2026-03-01 12:01:00"], [2, 1]),
        (["--until", "2026-03-01T12:01"], [0]),
        (["vehicles", "--since", "2026-03-01", "--status", "1"], [0]),
    ],
)
def test_one_asks_by_what_one_knows(filled, contexture, asked, expected):
    assert numbers(contexture("transactions", *asked, "--json")) == expected


def test_that_there_are_more_is_said(filled, contexture):
    done = contexture("transactions", "--last", "2")
    assert done.out.splitlines()[-1] == "there are more: these are the last 2; --last shows more"
    assert json.loads(contexture("transactions", "--last", "2", "--json").out)["has_more"] is True
    assert "there are more" not in contexture("transactions", "--last", "3").out


def test_looking_makes_no_tables(home, contexture):
    done = contexture("transactions", "vehicles")
    assert (done.code, done.out) == (0, "no such transaction is in the operational tables\n")
    assert list(home.iterdir()) == []


def test_what_can_not_be_asked_is_reported_with_the_way_out(filled, contexture, monkeypatch):
    trains = contexture("transactions", "trains")
    assert (trains.code, "there is no publication trains" in trains.err) == (2, True)
    assert "choose among: vehicles" in trains.err
    turned = contexture("transactions", "--since", "2026-03-02", "--until", "2026-03-01")
    assert (turned.code, "--since is not before --until" in turned.err) == (2, True)
    assert contexture("transactions", "--status", "lost").code == 2
    monkeypatch.setenv("CONTEXTURE_HOME", "s3://bucket/home?region=us-east-1")
    nowhere = contexture("transactions")
    assert (nowhere.code, "set CONTEXTURE_DATABASE as Airflow has it" in nowhere.err) == (2, True)
