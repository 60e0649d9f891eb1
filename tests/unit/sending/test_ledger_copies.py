"""A ledger that could lose its leader is noticed, with what to do."""

from __future__ import annotations

import pytest

from contexture.kafka import KafkaConfigurationError
from contexture.kafka.admin import ListedTopic
from contexture.sending.ledger_copies import LedgerCopies, ledger_copies

LEDGER = "contexture.ledger.vehicles"


class Brokers:
    """Answers as `TopicAdmin`."""

    def __init__(self, replicas, in_sync, brokers=3):
        self.replicas, self.in_sync, self.count = replicas, in_sync, brokers

    def listed(self, only=None):
        return {} if self.replicas is None else {only: ListedTopic(4, self.replicas, usable=True)}

    def brokers(self):
        return self.count

    def configs(self, names):
        if self.in_sync is None:
            raise KafkaConfigurationError("refused", next_step="allow DESCRIBE_CONFIGS")
        return {name: {"min.insync.replicas": self.in_sync} for name in names}


@pytest.mark.parametrize(
    ("brokers", "replicas", "in_sync", "weakness"),
    [
        (3, 3, "2", ""),
        (1, 1, "1", ""),
        (2, 2, "1", ""),
        (3, 3, None, ""),
        (2, 1, "1", f"the ledger {LEDGER} has 1 replica of 2"),
        (3, 1, None, f"the ledger {LEDGER} has 1 replica of 3"),
        (3, 2, "2", f"the ledger {LEDGER} has 2 replicas of 3"),
        (5, 3, "1", f"the ledger {LEDGER} has min.insync.replicas 1 of 2"),
        (3, 1, "1", f"the ledger {LEDGER} has 1 replica of 3 and min.insync.replicas 1 of 2"),
    ],
)
def test_a_ledger_is_weak_where_the_cluster_could_give_more(brokers, replicas, in_sync, weakness):
    found = ledger_copies(Brokers(replicas, in_sync, brokers), LEDGER)
    assert found is not None
    assert found.weakness == weakness
    assert bool(found.remedy) == bool(weakness)


def test_the_remedy_names_the_tools_and_the_topic():
    assert LedgerCopies(LEDGER, 1, 1, 3).remedy == (
        "give every partition of contexture.ledger.vehicles 3 replicas with kafka-reassign-partitions, then "
        "kafka-configs --alter --entity-type topics --entity-name contexture.ledger.vehicles "
        "--add-config min.insync.replicas=2"
    )


def test_a_ledger_that_is_not_made_yet_is_no_weak_one():
    assert ledger_copies(Brokers(None, "1"), LEDGER) is None
