"""A member of a group that leaves comes to an end, whatever its client does."""

from __future__ import annotations

import logging
import threading

import pytest
from confluent_kafka import KafkaError

from contexture.kafka.consumer_group import close_within


class Client:
    """Closes when it is allowed to, and raises what it is given."""

    def __init__(self, allowed: threading.Event, error: BaseException | None = None) -> None:
        self.allowed, self.error, self.closed = allowed, error, threading.Event()

    def close(self) -> None:
        self.allowed.wait(60)
        if self.error is not None:
            raise self.error
        self.closed.set()


@pytest.fixture
def allowed():
    event = threading.Event()
    event.set()
    return event


def test_a_client_that_closes_is_waited_for(allowed, caplog):
    client = Client(allowed)

    assert close_within(client)
    assert client.closed.is_set()
    assert not caplog.records


def test_a_client_that_never_closes_is_left_to_itself_and_that_is_reported(caplog):
    client = Client(threading.Event())

    with caplog.at_level(logging.WARNING):
        assert not close_within(client, seconds=0.01)

    assert not client.closed.is_set()
    assert [record.getMessage() for record in caplog.records] == [
        "the Kafka client has not left its group within 0 s; Contexture waits no longer for it"
    ]
    client.allowed.set()
    assert client.closed.wait(60)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(RuntimeError("k7"), "RuntimeError"), (KafkaError(KafkaError._TIMED_OUT, "k7"), "KafkaException")],
)
def test_an_error_of_the_close_is_in_the_log_by_its_kind_alone(allowed, caplog, error, kind):
    with caplog.at_level(logging.WARNING):
        assert close_within(Client(allowed, error))

    (record,) = caplog.records
    assert record.getMessage() == f"the Kafka client left its group with {kind}"
