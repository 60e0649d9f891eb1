"""What follows a try of a transaction that failed: another one at once, another one later, or the failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from contexture.errors import ContextureError
from contexture.kafka.failures import SendAgainError
from contexture.kafka.patience import Patience

AfterFailure = Callable[[ContextureError], int | None]
"""Given a failure that counts: milliseconds to wait before the next attempt, or None when there is none left."""

# Transactions that outlive their time-out are done again for free, but not for ever.
_FREE_REPEATS = 3


class Attempts:
    """Those of one sending of a shard.

    Args:
        after_failure: decides about a failure that counts.
        patience: begins anew with each attempt.
        again: is told why something is done again.
        sleep: seconds.
    """

    def __init__(
        self,
        after_failure: AfterFailure,
        patience: Patience,
        again: Callable[[str], None],
        sleep: Callable[[float], None],
    ) -> None:
        self._after_failure = after_failure
        self._patience = patience
        self._again = again
        self._sleep = sleep
        self._free_repeats = 0

    def succeeded(self) -> None:
        """A transaction is committed: the next one has all its free repeats."""
        self._free_repeats = 0

    def repeat(self, failure: SendAgainError) -> None:
        """Returns when the transaction may be done again: at once as long as that is free.

        Raises:
            ContextureError: no attempt is left.
        """
        self._free_repeats += 1
        if failure.counted or self._free_repeats > _FREE_REPEATS:
            self.count(failure.error)
            return
        self._again(f"doing the transaction again with a new client: {failure.error.message}")

    def count(self, error: ContextureError) -> None:
        """Returns when the next attempt is due.

        Raises:
            ContextureError: the failure itself: no attempt is left.
        """
        delay_ms = self._after_failure(error)
        if delay_ms is None:
            raise error
        self._free_repeats = 0
        self._patience.relieve()
        self._again(f"another attempt in {delay_ms} ms: {error.message}")
        self._sleep(delay_ms / 1000)


def taken_from(delays: Iterable[int]) -> AfterFailure:
    """Attempts after these delays (milliseconds), one after the other, whatever the failure."""
    waits = iter(delays)
    return lambda error: next(waits, None)
