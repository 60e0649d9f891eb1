"""When a failed batch is tried again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    schedule = RetrySchedule(batch_ttl, tuple(batch_retry_intervals))
    endless = chain(schedule.intervals, repeat(schedule.intervals[-1]))
    return endless if batch_ttl == FOR_EVER else islice(endless, batch_ttl)


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The attempts of one send: a first one, and `batch_ttl` more. The same rule as `retry_delays`, asked by number.

    Args:
        batch_ttl: how many retries there are; 0 for none, -1 for no end of them.
        intervals: milliseconds, at least one, each above 0.

    Raises:
        ConfigurationError: the count is below -1, or there is no positive interval.
    """

    batch_ttl: int
    intervals: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.batch_ttl < FOR_EVER or not self.intervals or min(self.intervals) <= 0:
            raise ConfigurationError(
                f"batch_ttl {self.batch_ttl} with batch_retry_intervals {list(self.intervals)} is no schedule",
                next_step="use a batch_ttl of -1 or more and intervals above 0 ms",
            )

    @property
    def attempts(self) -> int | None:
        """How many attempts there are, the first included; None when there is no end of them."""
        return None if self.batch_ttl == FOR_EVER else self.batch_ttl + 1

    def delay_after(self, failed: int) -> int | None:
        """The wait after that many failed attempts (1 or more), milliseconds; None when no attempt is left."""
        if self.attempts is not None and failed >= self.attempts:
            return None
        return self.intervals[min(failed, len(self.intervals)) - 1]
