"""Records that can never be sent, on a real broker: who refuses them, who is killed meanwhile, and what readers get."""

from __future__ import annotations

import random
import uuid

import pytest

from contexture.errors import RejectedError
from contexture.kafka import ClientSettings, TopicSpec, ensure_topics, read_committed
from contexture.kafka.clients import transactional_producer
from contexture.sending import Ledger, Publisher, SenderNames
from contexture.sending.dead_letters import DeadLetters, refused_records
from contexture.sending.testing import MemoryShard, OutboxRow

pytestmark = pytest.mark.integration

COUNT = 600
LARGE = {240, 243, 599}


@pytest.fixture(scope="module")
def settings(kafka):
    return ClientSettings.from_extra(kafka.client_settings())


@pytest.fixture
def name():
    return f"test-{uuid.uuid4().hex[:10]}"


class Target:
    """A topic that takes 20 kB, and a dead-letter topic of Kafka's default."""

    def __init__(self, settings, name, *, aside_bytes=1_048_588):
        self.settings, self.name, self.aside = settings, name, f"{name}.dead-letter"
        ensure_topics(settings, [TopicSpec(name, partitions=3, config={"max.message.bytes": "20000"})])
        ensure_topics(settings, [TopicSpec(self.aside, config={"max.message.bytes": str(aside_bytes)})])

    def publisher(self, settings=None, **options):
        return Publisher(
            settings or self.settings,
            SenderNames(self.name),
            shards=1,
            dead_letters=DeadLetters(self.aside, 5),
            **options,
        )

    def sent(self):
        return {record.key: record.value for record in self.records(self.name)}

    def records(self, topic):
        return list(read_committed(self.settings, [topic]))

    def left_out(self):
        return Ledger(self.settings, SenderNames(self.name)).read(0).dead_letters


def noise(size, seed):
    return random.Random(seed).randbytes(size)


def rows(topic, size=30_000):
    """Records of 60 bytes; some that no compression makes small enough."""
    return [
        OutboxRow(topic, b"k%d" % n, noise(size if n in LARGE else 60, n), transaction=n // 200) for n in range(COUNT)
    ]


def refusal_headers(record):
    return {name: value.decode() for name, value in record.headers if name.startswith("contexture_refused_")}


@pytest.mark.parametrize("refuses", ["client", "broker"])
def test_only_what_is_too_large_goes_to_the_dead_letters(kafka, name, refuses):
    limits = {"message.max.bytes": 25_000} if refuses == "client" else {}
    settings = ClientSettings.from_extra({**kafka.client_settings(), **limits})
    target = Target(settings, name)
    sending = rows(name)
    result = target.publisher().publish(MemoryShard(sending))
    assert (result.records_sent, result.dead_letters) == (COUNT, 3)
    assert len(target.records(name)) == COUNT - 3
    assert target.sent() == {row.key: row.value for n, row in enumerate(sending) if n not in LARGE}
    letters = sorted(target.records(target.aside), key=lambda record: record.key)
    assert [letter.key for letter in letters] == [b"k240", b"k243", b"k599"]
    assert {refusal_headers(letter)["contexture_refused_error"] for letter in letters} == {"MSG_SIZE_TOO_LARGE"}
    assert {refusal_headers(letter)["contexture_refused_by"] for letter in letters} == {refuses}
    # What the client does not take for its size, it does not take with more headers either.
    kept = [sending[n].value if refuses == "broker" else None for n in sorted(LARGE)]
    assert [letter.value for letter in letters] == kept
    # As `contexture dead-letters` lists them.
    read = sorted(refused_records(letters), key=lambda each: each.position)
    assert [(each.topic, each.position, each.value_bytes) for each in read] == [
        (name, n, 30_000) for n in sorted(LARGE)
    ]
    assert target.left_out() == (240, 243, 599)


def test_many_small_records_that_make_a_batch_too_large_are_all_sent(settings, name):
    target = Target(settings, name)
    sending = [OutboxRow(name, b"k", noise(2_000, n)) for n in range(200)]
    result = target.publisher().publish(MemoryShard(sending))
    assert result.dead_letters == 0
    assert [record.value for record in target.records(name)] == [row.value for row in sending]


def test_a_value_too_large_for_both_topics_leaves_its_size(settings, name):
    target = Target(settings, name, aside_bytes=20_000)
    target.publisher().publish(MemoryShard(rows(name)))
    letters = target.records(target.aside)
    assert [letter.value for letter in letters] == [None] * 3
    assert {refusal_headers(letter)["contexture_refused_value_bytes"] for letter in letters} == {"30000"}


def test_a_record_without_key_in_a_compacted_topic_is_dead_lettered(settings, name):
    target = Target(settings, name)
    ensure_topics(settings, [TopicSpec(f"{name}.compacted", keep="latest")])
    sending = [OutboxRow(f"{name}.compacted", key, b"v") for key in (b"k1", None, b"k2")]
    target.publisher().publish(MemoryShard(sending))
    assert sorted(record.key for record in target.records(f"{name}.compacted")) == [b"k1", b"k2"]
    (letter,) = target.records(target.aside)
    assert (letter.key, letter.value, refusal_headers(letter)["contexture_refused_error"]) == (
        None,
        b"v",
        "INVALID_RECORD",
    )


class Killed(BaseException):
    """Ends a sender where a kill would."""


class DyingProducer:
    """A client whose process dies at the n-th commit, before it or after it; it says no goodbye."""

    def __init__(self, producer, deaths, after):
        self._producer, self._deaths, self._after = producer, deaths, after
        self._dead = False

    def __getattr__(self, name):
        return getattr(self._producer, name)

    def __len__(self):
        return len(self._producer)

    def commit_transaction(self, timeout):
        self._deaths.append(1)
        if len(self._deaths) == self._after[0]:
            if self._after[1]:
                self._producer.commit_transaction(60)
            self._dead = True
            raise Killed
        self._producer.commit_transaction(timeout)

    def purge(self):
        if not self._dead:
            self._producer.purge()

    def abort_transaction(self, timeout):
        if not self._dead:
            self._producer.abort_transaction(timeout)


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("death", [2, 3, 5])
def test_a_sender_killed_at_any_commit_is_continued_exactly_once(settings, name, death, committed):
    target, deaths = Target(settings, name), []

    def opened(*call):
        return DyingProducer(transactional_producer(*call), deaths, (death, committed))

    sending = rows(name)
    try:
        target.publisher(open_producer=opened).publish(MemoryShard(sending))
    except (Killed, RejectedError):
        target.publisher().publish(MemoryShard(sending))
    assert len(target.records(name)) == COUNT - 3
    assert target.sent() == {row.key: row.value for n, row in enumerate(sending) if n not in LARGE}
    assert sorted(letter.key for letter in target.records(target.aside)) == [b"k240", b"k243", b"k599"]
    assert target.left_out() == (240, 243, 599)
