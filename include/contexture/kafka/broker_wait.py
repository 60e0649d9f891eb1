"""How long a call waits for brokers that do not respond, and what is reported in that time."""

from __future__ import annotations

import time
from collections.abc import Callable

from contexture.kafka.errors import BrokersAwayError

_REPORT_EVERY_SECONDS = 2.0


class BrokerWait:
    """Counts the time without any progress; `waited` raises when it was too long.

    Args:
        limit_seconds: how long brokers are waited for.
        report: gets one sentence every two seconds of waiting.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        limit_seconds: float,
        report: Callable[[str], None] = lambda sentence: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit_seconds = limit_seconds
        self._report = report
        self._clock = clock
        self._since: float | None = None
        self._reported = 0.0

    def reset(self) -> None:
        """The brokers did something: the count starts anew."""
        self._since = None

    def check(self, cause: str, *, report_immediately: bool = True) -> None:
        """Notes that nothing happened, and why as far as is known.

        Args:
            cause: for people.
            report_immediately: False for waits that are mostly over in a moment: they are reported when they are not.

        Raises:
            BrokersAwayError: nothing happened for longer than the limit.
        """
        now = self._clock()
        if self._since is None:
            self._since = now
            self._reported = now - _REPORT_EVERY_SECONDS if report_immediately else now
        self._report_or_raise(now, now - self._since, cause)

    def check_since(self, started: float, cause: str) -> None:
        """The same for a wait that began at `started` and is answered all the while.

        Raises:
            BrokersAwayError: it takes longer than the limit.
        """
        now = self._clock()
        self._report_or_raise(now, now - started, cause)

    def now(self) -> float:
        """Returns the time on the clock that waits are counted by."""
        return self._clock()

    def _report_or_raise(self, now: float, waited: float, cause: str) -> None:
        if waited >= self.limit_seconds:
            raise _brokers_away(waited, cause)
        if now - self._reported >= _REPORT_EVERY_SECONDS:
            self._reported = now
            self._report(f"waiting for the brokers, {waited:.0f} of {self.limit_seconds:.0f} s: {cause}")


def _brokers_away(waited_seconds: float, cause: str) -> BrokersAwayError:
    return BrokersAwayError(
        f"the Kafka brokers did not respond for {waited_seconds:.0f} s ({cause})",
        next_step="check that the brokers run and bootstrap.servers names them, then clear the task: sending "
        "continues from the ledger's position",
    )
