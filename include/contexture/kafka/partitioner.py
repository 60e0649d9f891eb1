"""Java's partitioner: which partition a key goes to, for one key and for many at once.

Every client of a topic must agree on it, or records of one key lose their order. Kafka's own clients use
`(murmur2(key) & 0x7fffffff) % partitions` (org.apache.kafka.common.utils.Utils#murmur2, seed 0x9747b28c).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import unpack_from
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF


def murmur2(key: bytes) -> int:
    """Returns the 32-bit hash of a key, unsigned."""
    length = len(key)
    whole = length & ~3
    h = _SEED ^ length
    for word in unpack_from(f"<{length >> 2}I", key):
        k = (word * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
    if whole != length:
        h = ((h ^ int.from_bytes(key[whole:], "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    return h ^ (h >> 15)


def partition_for(key: bytes | None, partitions: int) -> int:
    """Returns the partition (or shard) of a key among `partitions`; 0 for a record without a key."""
    if key is None:
        return 0
    return (murmur2(key) & _POSITIVE) % partitions


def shards_for(keys: Sequence[bytes], shards: int) -> npt.NDArray[np.int32]:
    """`partition_for` of many keys at once, in the order of the keys (a million keys take about a second)."""
    import numpy as np

    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    hashes = np.empty(len(keys), dtype=np.uint32)
    order = np.argsort(lengths, kind="stable")
    bounds = np.flatnonzero(np.diff(lengths[order])) + 1
    for group in np.split(order, bounds):
        if len(group):
            hashes[group] = _hash_equal_lengths([keys[at] for at in group.tolist()], int(lengths[group[0]]))
    return ((hashes & np.uint32(_POSITIVE)) % np.uint32(shards)).astype(np.int32)


def _hash_equal_lengths(keys: list[bytes], length: int) -> npt.NDArray[np.uint32]:
    import numpy as np

    m = np.uint32(_M)
    table = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), length)
    h = np.full(len(keys), _SEED ^ length, dtype=np.uint32)
    whole = length & ~3
    words = np.ascontiguousarray(table[:, :whole]).view("<u4") if whole else np.empty((len(keys), 0), np.uint32)
    for column in np.ascontiguousarray(words.T):
        k = column * m
        k = (k ^ (k >> np.uint32(24))) * m
        h = (h * m) ^ k
    if whole != length:
        for at in range(whole, length):
            h = h ^ (table[:, at].astype(np.uint32) << np.uint32(8 * (at - whole)))
        h = h * m
    h = (h ^ (h >> np.uint32(13))) * m
    return np.asarray(h ^ (h >> np.uint32(15)), dtype=np.uint32)
