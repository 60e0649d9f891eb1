"""What a reader does about an error that comes in place of a record."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from contexture.kafka import DamagedRecordsError, KafkaConfigurationError, OffsetGoneError
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.errors import BrokersAwayError
from contexture.kafka.reader import _Reading, raise_unreadable


class Message:
    """An error that the client gives in place of a record."""

    def __init__(self, name: str) -> None:
        self._error = KafkaError(getattr(KafkaError, name), "a reason")

    def error(self) -> KafkaError:
        return self._error

    def topic(self) -> str:
        return "cars"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 17


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("_AUTO_OFFSET_RESET", OffsetGoneError, r"cars\[3\] cannot be read from the requested offset"),
        ("OFFSET_OUT_OF_RANGE", OffsetGoneError, r"cars\[3\] cannot be read from the requested offset"),
        ("_BAD_MSG", DamagedRecordsError, r"records of cars\[3\] are damaged: _BAD_MSG"),
        ("_BAD_COMPRESSION", DamagedRecordsError, r"damaged: _BAD_COMPRESSION.*receive\.message\.max\.bytes"),
        ("INVALID_MSG", DamagedRecordsError, "damaged: INVALID_MSG"),
        ("TOPIC_AUTHORIZATION_FAILED", KafkaConfigurationError, r"\(topic cars\).*READ and DESCRIBE on the topic"),
        ("UNKNOWN_TOPIC_OR_PART", KafkaConfigurationError, "start a new run"),
    ],
)
def test_what_would_leave_records_out_is_raised(name, kind, reason):
    message = Message(name)
    with pytest.raises(kind, match=reason):
        raise_unreadable(message.error(), message)


@pytest.mark.parametrize("name", ["_TRANSPORT", "NOT_LEADER_FOR_PARTITION", "KAFKA_STORAGE_ERROR", "_ALL_BROKERS_DOWN"])
def test_what_the_client_tries_again_by_itself_is_not(name):
    message = Message(name)
    raise_unreadable(message.error(), message)


def test_an_error_that_does_not_end_is_given_up_and_reported():
    moments = iter(range(0, 1000, 10))
    reading = _Reading(
        settings=None, broker_wait=BrokerWait(60, clock=lambda: next(moments)), isolation="read_committed"
    )

    class Consumer:
        def consume(self, *_: object) -> list[Message]:
            return [Message("KAFKA_STORAGE_ERROR")]

    def read() -> None:
        while True:
            assert list(reading._some(Consumer(), {("cars", 3): 20})) == []

    with pytest.raises(BrokersAwayError, match="KAFKA_STORAGE_ERROR: a reason"):
        read()
