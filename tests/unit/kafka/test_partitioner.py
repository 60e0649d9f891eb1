"""The same key goes to the same partition as with Kafka's own clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.kafka.partitioner import murmur2, partition_for, shards_for


@pytest.mark.parametrize(
    ("key", "signed_hash"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_hash_equals_the_one_of_java_clients(key, signed_hash):
    assert murmur2(key) == signed_hash & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "partition"), [(b"21", 0), (b"foobar", 6), (b"a-little-bit-long-string", 2), (b"abc", 7), (b"", 1)]
)
def test_partition_of_ten(key, partition):
    assert partition_for(key, 10) == partition


def test_a_record_without_key_stays_in_the_first_shard():
    assert partition_for(None, 7) == 0


@given(st.lists(st.binary(max_size=40)), st.integers(1, 64))
def test_many_keys_at_once_go_where_single_keys_go(keys, shards):
    assert shards_for(keys, shards).tolist() == [partition_for(key, shards) for key in keys]
