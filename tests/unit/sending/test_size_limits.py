"""Which records would be refused for their size, by whom."""

from __future__ import annotations

import pytest

from contexture.kafka import ClientSettings
from contexture.sending.size_limits import SizeLimits, size_limits

LIMITS = SizeLimits(1000, {"t": 500, "u": 5000}, 20_000)


def packed_to(size: int):
    return lambda: size


def never() -> int:
    raise AssertionError("compressing was of no use")


def test_the_client_compares_before_compression_and_topics_after_it() -> None:
    assert [each.limit for each in LIMITS.exceeded(873, packed_to(100), ["t"])] == ["client"]
    assert [each.limit for each in LIMITS.exceeded(872, packed_to(245), ["t"])] == ["topic"]
    assert LIMITS.exceeded(872, packed_to(244), ["t"]) == ()


def test_each_limit_that_is_exceeded_is_named_with_its_topic() -> None:
    found = LIMITS.exceeded(50_000, packed_to(50_000), ["t", "u", "not-known"])
    assert [str(each) for each in found] == [
        "message.max.bytes of the client is 1,000",
        "max.message.bytes of topic t is 500",
        "max.message.bytes of topic u is 5,000",
        "socket.request.max.bytes of the broker is 20,000",
    ]


def test_what_fits_as_it_is_is_not_compressed() -> None:
    assert LIMITS.exceeded(200, never, ["t", "u"]) == ()


def test_without_a_connection_the_largest_artefact_is_the_limit() -> None:
    found = size_limits(None, ["t"], {"max.message.bytes": "7000"})
    assert (found.client_bytes, found.topic_bytes, found.request_bytes) == (209_715_200, {"t": 7000}, None)
    assert "no connection" in found.unknown


@pytest.mark.slow
def test_without_brokers_what_the_connection_says_is_compared() -> None:
    settings = ClientSettings.from_extra(
        {"bootstrap.servers": "127.0.0.1:9", "message.max.bytes": 5000, "compression.type": "zstd"}
    )
    found = size_limits(settings, ["t"], {}, wait_seconds=0.2)
    assert (found.client_bytes, found.compression, found.topic_bytes) == (5000, "zstd", {"t": 1_048_588})
    assert found.unknown.startswith("the limits of the brokers are unknown: ")
