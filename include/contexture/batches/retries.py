"""When a failed batch is tried again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat

from contexture.errors import ConfigurationError

FOR_EVER = -1


def retry_delays(batch_ttl: int, batch_retry_intervals: Sequence[int]) -> Iterator[int]:
    """The waits before each retry, milliseconds.

    The intervals come one after the other, and the last one again as long as retries are left.

    Args:
        batch_ttl: how many retries there are; 0 for none, -1 for no end of them.
        batch_retry_intervals: milliseconds, at least one, each above 0.

    Raises:
        ConfigurationError: the count is below -1, or there is no positive interval.

    >>> list(retry_delays(4, [1000, 5000]))
    [1000, 5000, 5000, 5000]
    """
    intervals = tuple(batch_retry_intervals)
    if batch_ttl < FOR_EVER or not intervals or min(intervals) <= 0:
        raise ConfigurationError(
            f"batch_ttl {batch_ttl} with batch_retry_intervals {list(intervals)} is no schedule",
            next_step="use a batch_ttl of -1 or more and intervals above 0 ms",
        )
    endless = chain(intervals, repeat(intervals[-1]))
    return endless if batch_ttl == FOR_EVER else islice(endless, batch_ttl)
