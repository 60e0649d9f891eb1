"""Room for the largest artefact, unless the connection or the publication says otherwise."""

from __future__ import annotations

import random

import pytest

from contexture.errors import RejectedError
from contexture.kafka import ClientSettings
from contexture.kafka.broker_wait import BrokerWait
from contexture.sending import LARGEST_RECORD_BYTES, for_structures, structure_topic_config
from contexture.sending.dead_letters import RequestLimit
from contexture.sending.testing import OutboxRow, record_batch

URN = b"urn:sdmx:org.sdmx.infomodel.codelist.Codelist=ECB:CL_AREA(1.0)"
NOISE = random.Random(1).randbytes(100_000)


def settings(**options: object) -> ClientSettings:
    return ClientSettings.from_extra({"bootstrap.servers": "nowhere:1", **options})


def test_the_limit_is_that_of_the_documentation() -> None:
    assert LARGEST_RECORD_BYTES == 209_715_200


def test_a_client_has_room_for_the_largest_artefact() -> None:
    options = for_structures(settings()).producer()
    assert options["message.max.bytes"] == 209_715_200
    assert int(options["queue.buffering.max.kbytes"]) * 1024 > 209_715_200
    assert options["transaction.timeout.ms"] == 120_000


def test_what_the_connection_says_stays() -> None:
    given = settings(**{"message.max.bytes": 1_000_000, "transaction.timeout.ms": 60_000})
    options = for_structures(given, transaction_bytes=10**11).producer()
    assert (options["message.max.bytes"], options["transaction.timeout.ms"]) == (1_000_000, 60_000)


def test_a_queue_holds_what_a_connection_allows() -> None:
    options = for_structures(settings(**{"message.max.bytes": 900_000_000})).producer()
    assert int(options["queue.buffering.max.kbytes"]) * 1024 > 900_000_000


@pytest.mark.parametrize(
    ("transaction_bytes", "timeout_ms"), [(300_000_000, 120_000), (3_000_000_000, 300_000), (10**12, 900_000)]
)
def test_only_a_transaction_that_needs_it_may_take_longer(transaction_bytes: int, timeout_ms: int) -> None:
    assert for_structures(settings(), transaction_bytes).producer()["transaction.timeout.ms"] == timeout_ms


def test_new_topics_have_room_unless_the_publication_says_otherwise() -> None:
    room = structure_topic_config({"retention.ms": "1000"})
    assert room["retention.ms"] == "1000"
    assert int(room["max.message.bytes"]) > LARGEST_RECORD_BYTES
    assert structure_topic_config({"max.message.bytes": "5"}) == {"max.message.bytes": "5"}


class Known(RequestLimit):
    """Brokers whose limit is known without asking."""

    bytes = 60_000


def limit(codec: str) -> RequestLimit:
    return Known(settings(**{"compression.type": codec}), BrokerWait(1.0), asked_above_bytes=50_000)


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd", "gzip", "snappy"])
def test_a_record_that_no_broker_would_take_is_refused_by_name(codec: str) -> None:
    rows = record_batch([OutboxRow("structures", b"small", b"v"), OutboxRow("structures", URN, NOISE)], 0)
    with pytest.raises(RejectedError, match=r"CL_AREA\(1\.0\) has 100\d+ bytes .*brokers accept 60000") as refused:
        limit(codec).check(rows)
    assert (refused.value.context["topic"], refused.value.context["status"]) == ("structures", 2)
    assert "socket.request.max.bytes" in refused.value.next_step


@pytest.mark.parametrize("codec", ["lz4", "zstd", "gzip", "snappy"])
def test_a_record_that_fits_when_it_is_compressed_passes(codec: str) -> None:
    limit(codec).check(record_batch([OutboxRow("structures", URN, bytes(1_000_000))], 0))


def test_small_records_and_tombstones_ask_no_broker() -> None:
    rows = record_batch([OutboxRow("structures", URN, None), OutboxRow("structures", URN, b"v")], 0)
    RequestLimit(settings(), BrokerWait(1.0)).check(rows)


def test_keys_that_are_no_urns_are_not_shown() -> None:
    rows = record_batch([OutboxRow("cars", b"a person's name", NOISE)], 0)
    with pytest.raises(RejectedError, match=r"^a record has"):
        limit("none").check(rows)
