"""Questions to a cluster that a sender's protocol rests on; simulated brokers must answer as real ones do.

A script works with confluent-kafka's clients, whichever they are, and gives what it saw. What it must see is written
once (`EXPECTED`), and compared with both: `tests/unit/simulation` asks the simulated brokers, and
`tests/integration/kafka/test_simulated_brokers.py` the real ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource, NewTopic, OffsetSpec, ResourceType

Seen = list[object]


@dataclass(frozen=True)
class Lab:
    """A cluster to ask, and names of its own.

    Attributes:
        name: what topics and transactional ids begin with.
        producer, consumer, admin: make clients from options, which say how to reach the cluster.
        sleep: seconds.
    """

    name: str
    producer: Callable[[Mapping[str, Any]], Any]
    consumer: Callable[[Mapping[str, Any]], Any]
    admin: Callable[[Mapping[str, Any]], Any]
    sleep: Callable[[float], None] = time.sleep

    def topic(self, partitions: int = 1) -> str:
        """Returns a new topic."""
        name, client = f"{self.name}-topic", self.admin({})
        for made in client.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result()
        self.sleep(0.5)
        return name

    def sender(self, suffix: str = "", timeout_ms: int = 60_000) -> Any:
        """Returns a transactional producer that has fenced those before it."""
        options = {"transactional.id": f"{self.name}{suffix}", "transaction.timeout.ms": timeout_ms}
        made = self.producer(options)
        made.init_transactions(30)
        return made

    def ends(self, topic: str, partition: int = 0) -> tuple[int, int]:
        """Returns where a partition ends: for readers of committed records, and for all."""
        client, place = self.admin({}), TopicPartition(topic, partition)
        latest: Callable[[], Any] = OffsetSpec.latest
        levels = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        answers = [client.list_offsets({place: latest()}, isolation_level=level) for level in levels]
        first, second = (int(next(iter(each.values())).result().offset) for each in answers)
        return first, second

    def await_stable(self, topic: str) -> tuple[int, int]:
        """Returns the same, once the markers of what was ended are there."""
        for _ in range(200):
            found = self.ends(topic)
            if found[0] == found[1]:
                break
            self.sleep(0.05)
        return found

    def read(self, topic: str, isolation: str = "read_committed") -> list[tuple[int, str | None]]:
        """Offsets and values of a partition up to its end, and the end as the reader hears of it."""
        options = {"group.id": "scripts", "isolation.level": isolation, "enable.partition.eof": True}
        client = self.consumer({**options, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found: list[tuple[int, str | None]] = []
        while True:
            message = client.poll(10)
            assert message is not None, "no answer"
            error = message.error()
            if error is None:
                found.append((message.offset(), message.value().decode()))
            elif error.code() == KafkaError._PARTITION_EOF:
                client.close()
                return [*found, (message.offset(), None)]


def _put(sender: Any, topic: str, *values: str) -> None:
    for value in values:
        sender.produce(topic, value.encode(), b"k", 0)
    sender.flush(30)


def _failure(call: Callable[[], object]) -> tuple[str, bool]:
    """Returns the name of the error that a call fails with, and whether the client is done for."""
    try:
        call()
    except KafkaException as failure:
        error = failure.args[0]
        return error.name(), error.fatal()
    return "NO_ERROR", False


def commits_and_markers(lab: Lab) -> Seen:
    """A commit takes an offset of its own, behind which the partition ends."""
    topic, sender = lab.topic(), lab.sender()
    sender.begin_transaction()
    _put(sender, topic, "a", "b")
    sender.commit_transaction(30)
    return [lab.await_stable(topic), lab.read(topic), lab.read(topic, "read_uncommitted")]


def open_transaction_hides(lab: Lab) -> Seen:
    """What is open is behind the last stable offset, and what others committed behind it too."""
    topic, first, second = lab.topic(), lab.sender("-1"), lab.sender("-2")
    first.begin_transaction()
    _put(first, topic, "a")
    second.begin_transaction()
    _put(second, topic, "b")
    second.commit_transaction(30)
    lab.sleep(1.0)
    seen: Seen = [lab.ends(topic), lab.read(topic), lab.read(topic, "read_uncommitted")]
    first.commit_transaction(30)
    return [*seen, lab.await_stable(topic), lab.read(topic)]


def abort_is_never_read(lab: Lab) -> Seen:
    """Readers of committed records pass over what was aborted, also between what was not."""
    topic, sender = lab.topic(), lab.sender()
    for value, end in (("a", sender.commit_transaction), ("b", sender.abort_transaction)):
        sender.begin_transaction()
        _put(sender, topic, value)
        end(30)
        lab.await_stable(topic)
    sender.begin_transaction()
    _put(sender, topic, "c")
    sender.commit_transaction(30)
    return [lab.await_stable(topic), lab.read(topic), lab.read(topic, "read_uncommitted")]


def new_sender_aborts_the_old(lab: Lab) -> Seen:
    """`init_transactions` aborts what the one before left open; that one is fenced when it goes on."""
    topic, old = lab.topic(), lab.sender()
    old.begin_transaction()
    _put(old, topic, "a")
    new = lab.sender()
    seen: Seen = [lab.await_stable(topic), _failure(lambda: old.commit_transaction(30))]
    new.begin_transaction()
    _put(new, topic, "b")
    new.commit_transaction(30)
    return [*seen, lab.await_stable(topic), lab.read(topic)]


def fenced_while_producing(lab: Lab) -> Seen:
    """A fenced sender's records are refused by the partition too."""
    topic, old = lab.topic(), lab.sender()
    old.begin_transaction()
    _put(old, topic, "a")
    lab.sender()
    old.produce(topic, b"b", b"k", 0)
    return [_failure(lambda: old.commit_transaction(30)), lab.await_stable(topic), lab.read(topic)]


def timed_out_transaction(lab: Lab) -> Seen:
    """A transaction that is open for too long is aborted, and its sender is fenced."""
    topic, sender = lab.topic(), lab.sender(timeout_ms=1_000)
    sender.begin_transaction()
    _put(sender, topic, "a")
    for _ in range(400):
        lab.sleep(0.1)
        if lab.ends(topic)[0] > 0:
            break
    return [lab.ends(topic), lab.read(topic), _failure(lambda: sender.commit_transaction(30))]


def empty_transaction(lab: Lab) -> Seen:
    """A transaction without records leaves nothing."""
    topic, sender = lab.topic(), lab.sender()
    sender.begin_transaction()
    sender.commit_transaction(30)
    sender.begin_transaction()
    sender.abort_transaction(30)
    return [lab.ends(topic), lab.read(topic)]


def deleted_records(lab: Lab) -> Seen:
    """DeleteRecords leaves the end where it is; readers begin at what is left."""
    topic, sender = lab.topic(), lab.sender()
    for value in ("a", "b"):
        sender.begin_transaction()
        _put(sender, topic, value)
        sender.commit_transaction(30)
        lab.await_stable(topic)
    client = lab.admin({})
    for answer in client.delete_records([TopicPartition(topic, 0, 2)]).values():
        answer.result()
    seen: Seen = [lab.ends(topic), lab.read(topic)]
    for answer in client.delete_records([TopicPartition(topic, 0, -1)]).values():
        answer.result()
    return [*seen, lab.ends(topic), lab.read(topic)]


def topics_and_their_configuration(lab: Lab) -> Seen:
    """A topic that is not there is listed with an error; one that is, with its partitions and configuration."""
    topic, client = lab.topic(2), lab.admin({})
    there, missing = (client.list_topics(name, timeout=10).topics[name] for name in (topic, f"{lab.name}-missing"))
    resource = ConfigResource(ResourceType.TOPIC, topic)
    config = client.describe_configs([resource])[resource].result()
    again = client.create_topics([NewTopic(topic, 1, 1)])[topic].exception()
    return [
        (sorted(there.partitions), there.error),
        (sorted(missing.partitions), missing.error.name()),
        config["cleanup.policy"].value,
        again.args[0].name(),
    ]


SCRIPTS: Final[tuple[Callable[[Lab], Seen], ...]] = (
    commits_and_markers,
    open_transaction_hides,
    abort_is_never_read,
    new_sender_aborts_the_old,
    fenced_while_producing,
    timed_out_transaction,
    empty_transaction,
    deleted_records,
    topics_and_their_configuration,
)

EXPECTED: Final[Mapping[str, Seen]] = {
    "commits_and_markers": [(3, 3), [(0, "a"), (1, "b"), (3, None)], [(0, "a"), (1, "b"), (3, None)]],
    "open_transaction_hides": [
        (0, 3),
        [(0, None)],
        [(0, "a"), (1, "b"), (3, None)],
        (4, 4),
        [(0, "a"), (1, "b"), (4, None)],
    ],
    "abort_is_never_read": [
        (6, 6),
        [(0, "a"), (4, "c"), (6, None)],
        [(0, "a"), (2, "b"), (4, "c"), (6, None)],
    ],
    "new_sender_aborts_the_old": [(2, 2), ("_FENCED", True), (4, 4), [(2, "b"), (4, None)]],
    "fenced_while_producing": [("_FENCED", True), (2, 2), [(2, None)]],
    "timed_out_transaction": [(2, 2), [(2, None)], ("_FENCED", True)],
    "empty_transaction": [(0, 0), [(0, None)]],
    "deleted_records": [(4, 4), [(2, "b"), (4, None)], (4, 4), [(4, None)]],
    "topics_and_their_configuration": [([0, 1], None), ([], "UNKNOWN_TOPIC_OR_PART"), "delete", "TOPIC_ALREADY_EXISTS"],
}
