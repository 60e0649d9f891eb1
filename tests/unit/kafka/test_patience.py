"""Waiting for brokers is visible and has an end."""

from __future__ import annotations

import pytest

from contexture.kafka import BrokersAwayError
from contexture.kafka.broker_wait import BrokerWait


@pytest.fixture
def time():
    return [0.0]


@pytest.fixture
def told():
    return []


@pytest.fixture
def patience(time, told):
    return BrokerWait(10.0, told.append, clock=lambda: time[0])


def wait(patience, time, seconds, **options):
    for _ in range(seconds):
        patience.waited("down", **options)
        time[0] += 1.0


def test_waiting_is_told_at_once_and_every_two_seconds(patience, time, told):
    wait(patience, time, 5)
    assert told == [
        "waiting for the brokers, 0 of 10 s: down",
        "waiting for the brokers, 2 of 10 s: down",
        "waiting for the brokers, 4 of 10 s: down",
    ]


def test_a_moment_of_waiting_is_not_told(patience, time, told):
    wait(patience, time, 2, said_at_once=False)
    assert told == []


def test_it_ends_at_the_limit_and_says_why(patience, time):
    with pytest.raises(BrokersAwayError, match=r"did not answer for 10 s \(down\)"):
        wait(patience, time, 11)


def test_any_sign_of_life_starts_the_count_anew(patience, time):
    wait(patience, time, 9)
    patience.relieve()
    wait(patience, time, 9)


def test_time_between_waits_does_not_count(patience, time):
    wait(patience, time, 1)
    patience.relieve()
    time[0] += 3600.0
    patience.waited("down")
