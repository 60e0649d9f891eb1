"""When a failed batch is tried again."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.errors import ConfigurationError

NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """The attempts of one send: a first one, and `batch_ttl` more.

    The intervals come in order, and the last one again as long as retries are left.

    Args:
        batch_ttl: how many retries there are; 0 for none, -1 for no end of them.
        intervals: milliseconds, at least one, each above 0.

    Raises:
        ConfigurationError: the count is below -1, or there is no positive interval.
    """

    batch_ttl: int
    intervals: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.batch_ttl < NO_LIMIT or not self.intervals or min(self.intervals) <= 0:
            raise ConfigurationError(
                f"batch_ttl {self.batch_ttl} with batch_retry_intervals {list(self.intervals)} is no schedule",
                next_step="use a batch_ttl of -1 or more and intervals above 0 ms",
            )

    @property
    def attempts(self) -> int | None:
        """How many attempts there are, the first included; None when there is no end of them."""
        return None if self.batch_ttl == NO_LIMIT else self.batch_ttl + 1

    def delay_after(self, failed: int) -> int | None:
        """Returns the wait after that many failed attempts (1 or more), milliseconds; None when no attempt is left."""
        if self.attempts is not None and failed >= self.attempts:
            return None
        return self.intervals[min(failed, len(self.intervals)) - 1]
