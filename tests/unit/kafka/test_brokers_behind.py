"""A topic that was just made is known to one broker before it is known to another."""

from __future__ import annotations

from concurrent.futures import Future
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from contexture.kafka import ClientSettings, KafkaConfigurationError
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.errors import BrokersAwayError
from contexture.sending.ledger import ledger_partitions

LEDGER = "contexture.ledger.city"


class Cluster:
    """Answers for the offsets of partitions, and for lists of topics; the last answer stays.

    Args:
        offsets: an offset, or None for a broker that does not know the partition.
        lists: the partitions that a broker lists, 0 for one that does not know the topic.
    """

    def __init__(self, offsets: list[int | None], lists: list[int]) -> None:
        self.offsets = offsets
        self.lists = lists
        self.asked = 0
        self.unlisted = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)

    def list_offsets(self, wanted: dict[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        self.asked += 1
        offset = self.offsets.pop(0) if len(self.offsets) > 1 else self.offsets[0]
        answer: Future[Any] = Future()
        if offset is None:
            answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        else:
            answer.set_result(SimpleNamespace(offset=offset))
        return dict.fromkeys(wanted, answer)

    def list_topics(self, topic: str, timeout: float) -> Any:
        count = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        parts = {number: SimpleNamespace(replicas=[1, 2, 3], leader=1) for number in range(count)}
        listed = SimpleNamespace(partitions=parts, error=None if parts else self.unlisted)
        return SimpleNamespace(topics={topic: listed})

    def poll(self, _: float) -> None:
        """Has nothing to report."""


def admin(cluster: Cluster, broker_wait: BrokerWait | None = None) -> TopicAdmin:
    made = TopicAdmin(ClientSettings({"bootstrap.servers": "127.0.0.1:1"}), broker_wait or BrokerWait(30))
    made.__dict__["_client"] = cluster
    return made


def ends(cluster: Cluster, broker_wait: BrokerWait | None = None, partition: int = 0) -> dict[tuple[str, int], int]:
    return admin(cluster, broker_wait).ends([(LEDGER, partition)], committed=True)


def test_a_broker_that_is_behind_is_asked_again() -> None:
    cluster = Cluster([None, None, 7], [2])
    assert ends(cluster) == {(LEDGER, 0): 7}
    assert cluster.asked == 3


def test_the_list_of_a_broker_that_is_behind_itself_is_not_believed_at_once() -> None:
    assert ends(Cluster([None, 7], [0, 2])) == {(LEDGER, 0): 7}


def test_a_topic_that_no_broker_lists_is_missing() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"finding offsets in topics \(topic contexture\.ledger\.city\)"):
        ends(Cluster([None], [0]))


def test_a_partition_beyond_those_of_the_topic_is_missing() -> None:
    with pytest.raises(KafkaConfigurationError, match="UNKNOWN_TOPIC_OR_PART"):
        ends(Cluster([None], [2]), partition=2)


def test_what_the_client_gives_while_a_leader_is_lost_is_no_offset() -> None:
    """-1001, without an error: a ledger whose end that is would be read as empty (measured on three brokers)."""
    cluster = Cluster([-1001, -1, 286], [2])
    assert ends(cluster) == {(LEDGER, 0): 286}
    assert cluster.asked == 3
    assert admin(Cluster([-1001, 0], [2])).beginnings([(LEDGER, 0)]) == {(LEDGER, 0): 0}


def test_a_time_after_all_records_is_their_end_and_a_lost_leader_is_not() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert admin(Cluster([-1001, 40], [2])).offsets_at([(LEDGER, 0)], noon) == {(LEDGER, 0): 40}
    assert admin(Cluster([-1, 286], [2])).offsets_at([(LEDGER, 0)], noon) == {(LEDGER, 0): 286}


def test_a_leader_that_stays_lost_is_not_waited_for_without_an_end() -> None:
    moments = iter(range(0, 1000, 20))
    with pytest.raises(
        BrokersAwayError, match=r"contexture\.ledger\.city\[0\] has no leader that reports its end offset"
    ):
        ends(Cluster([-1001], [2]), BrokerWait(30, clock=lambda: next(moments)))


def test_a_broker_that_stays_behind_is_not_waited_for_for_ever() -> None:
    moments = iter(range(0, 1000, 20))
    with pytest.raises(BrokersAwayError, match=r"does not have contexture\.ledger\.city yet"):
        ends(Cluster([None], [2]), BrokerWait(30, clock=lambda: next(moments)))


def test_a_topic_whose_leader_is_being_chosen_is_no_missing_topic() -> None:
    cluster = Cluster([7], [0, 2])
    cluster.unlisted = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    assert ledger_partitions(admin(cluster), LEDGER) == 2


def test_one_broker_that_has_not_heard_of_a_ledger_makes_it_no_missing_ledger() -> None:
    assert ledger_partitions(admin(Cluster([7], [0, 0, 2])), LEDGER) == 2
    assert ledger_partitions(admin(Cluster([7], [0])), LEDGER) == 0
