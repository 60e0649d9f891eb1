"""What a member of a group does with the partitions that it is given."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from contexture.errors import RetriableError
from contexture.kafka import ClientSettings
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.consumer_group import GroupMember

SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:1"})


class Client:
    """Gives partitions 0 and 1 in its first poll, and once more while it closes, as librdkafka may.

    The group has committed offset 7 in partition 1, and nothing in partition 0.
    """

    def __init__(self, failure: KafkaException | None = None, unsaid: KafkaError | None = None) -> None:
        self.failure = failure
        self.unsaid = unsaid
        self.asked, self.given = 0, []
        self.closed = False

    def subscribe(self, topics, on_assign):
        self.on_assign = on_assign

    def poll(self, seconds):
        if not self.asked:
            self.on_assign(self, [TopicPartition("cars", 0), TopicPartition("cars", 1)])

    def committed(self, places, timeout):
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        found = [TopicPartition(each.topic, each.partition, 7 if each.partition else -1001) for each in places]
        return [Unsaid(each, self.unsaid) for each in found] if self.unsaid is not None else found

    def incremental_assign(self, places):
        self.given += [(each.partition, each.offset) for each in places]

    def close(self):
        self.on_assign(self, [TopicPartition("cars", 2)])
        self.closed = True


class Unsaid:
    """A partition of which the brokers did not say what the group has committed."""

    def __init__(self, place, error):
        self.topic, self.partition, self.offset, self.error = place.topic, place.partition, -1001, error


def member(client):
    return GroupMember(SETTINGS, ("cars",), "audit", None, 30.0, BrokerWait(60), open_consumer=lambda *_, **__: client)


def test_reading_begins_at_the_group_s_offsets_else_at_the_beginning():
    client = Client()
    with member(client) as joined:
        assert list(joined.records(idle_seconds=0.01)) == []
        assert client.given == [(0, OFFSET_BEGINNING), (1, 7)]


def test_what_it_is_given_while_it_leaves_is_not_asked_about():
    client = Client()
    with member(client) as joined:
        list(joined.records(idle_seconds=0.01))
    assert (client.closed, client.asked, len(client.given)) == (True, 1, 2)


def test_brokers_that_do_not_return_the_group_s_offsets_are_an_error_to_try_again():
    client = Client(KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer")))
    with member(client) as joined:
        for _ in range(2):
            with pytest.raises(RetriableError, match="reading the group's offsets"):
                list(joined.records(idle_seconds=0.01))
    assert (client.closed, client.given) == (True, [])


def test_a_partition_of_which_brokers_do_not_say_what_is_committed_is_not_read_from_its_beginning():
    client = Client(unsaid=KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT, "pending"))
    with member(client) as joined, pytest.raises(RetriableError, match="finding where the group is"):
        list(joined.records(idle_seconds=0.01))
    assert client.given == []
