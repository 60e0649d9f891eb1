"""Waiting for brokers is visible and has an end."""

from __future__ import annotations

import pytest

from contexture.kafka import BrokersAwayError
from contexture.kafka.broker_wait import BrokerWait


@pytest.fixture
def time():
    return [0.0]


@pytest.fixture
def reported():
    return []


@pytest.fixture
def broker_wait(time, reported):
    return BrokerWait(10.0, reported.append, clock=lambda: time[0])


def wait(broker_wait, time, seconds, **options):
    for _ in range(seconds):
        broker_wait.check("down", **options)
        time[0] += 1.0


def test_waiting_is_reported_immediately_and_every_two_seconds(broker_wait, time, reported):
    wait(broker_wait, time, 5)
    assert reported == [
        "waiting for the brokers, 0 of 10 s: down",
        "waiting for the brokers, 2 of 10 s: down",
        "waiting for the brokers, 4 of 10 s: down",
    ]


def test_a_moment_of_waiting_is_not_reported(broker_wait, time, reported):
    wait(broker_wait, time, 2, report_immediately=False)
    assert reported == []


def test_it_ends_at_the_limit_and_says_why(broker_wait, time):
    with pytest.raises(BrokersAwayError, match=r"did not respond for 10 s \(down\)"):
        wait(broker_wait, time, 11)


def test_any_sign_of_life_starts_the_count_anew(broker_wait, time):
    wait(broker_wait, time, 9)
    broker_wait.reset()
    wait(broker_wait, time, 9)


def test_time_between_waits_does_not_count(broker_wait, time):
    wait(broker_wait, time, 1)
    broker_wait.reset()
    time[0] += 3600.0
    broker_wait.check("down")
