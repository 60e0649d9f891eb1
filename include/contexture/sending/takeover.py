"""What follows when brokers say that a sender was fenced: nothing of it is believed but what the ledger shows.

Brokers answer three things alike: another sender took the shard over; the transaction outlived its time-out; a request
of an earlier client arrived late (an InitProducerId that a network held back raises the epoch as a living sender does,
and fences nobody but the right one). Only the first leaves a row in the ledger that this sending did not write. So the
ledger is looked at, after a wait in which another sender would get on, and without such a row the sending goes on with
a new client.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from contexture.kafka.error_table import fenced
from contexture.kafka.errors import FencedError
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.sending_ports import LedgerPort

# Of two living senders, each of which fences the other, one has its transaction through within these waits: most take
# less than 2 s. They grow so that long transactions get through too.
FENCED_WAITS_SECONDS: Final = (2.0, 6.0, 18.0)


class OwnRows:
    """The rows of the ledger that one sending of a shard knows: what it found, and what it wrote.

    Attributes:
        outlived: its last transaction was open for longer than it may.
        has_begun: it has found out what the ledger shows.
    """

    def __init__(self) -> None:
        self.outlived = False
        self.has_begun = False
        self._known: LedgerEntry | None = None
        self._written: LedgerEntry | None = None

    def found(self, entry: LedgerEntry | None) -> None:
        """What the ledger shows when a client begins."""
        self.outlived, self.has_begun, self._known, self._written = False, True, entry, None

    def writes(self, entry: LedgerEntry) -> None:
        """A row whose commit is tried now; the one before it is committed."""
        if self._written is not None:
            self._known = self._written
        self._written = entry

    def knows(self, entry: LedgerEntry | None) -> bool:
        """Whether no other sender wrote what the ledger shows."""
        return entry in (self._known, self._written)

    def check(self, entry: LedgerEntry | None) -> None:
        """Sees that what the ledger shows is known.

        Raises:
            FencedError: another sender wrote it.
        """
        if not self.knows(entry):
            raise replaced()


class Fencings:
    """Those of one sending of a shard.

    Args:
        own: the ledger's rows that it knows.
        ledger: its publication's.
        shard: its number.
        again: is told why something is done again.
        sleep: seconds.
    """

    def __init__(
        self, own: OwnRows, ledger: LedgerPort, shard: int, again: Callable[[str], None], sleep: Callable[[float], None]
    ) -> None:
        self._own = own
        self._ledger = ledger
        self._shard = shard
        self._again = again
        self._sleep = sleep
        self._count = 0

    def succeeded(self) -> None:
        """A transaction is committed: what fenced the sender is over."""
        self._count = 0

    def look_into(self, failure: FencedError) -> None:
        """Returns when the sending may go on with a new client.

        Raises:
            FencedError: another sender took over, or fenced this one too often in a row.
        """
        if not self._own.has_begun:
            # It was fenced before it looked. What is there now counts as found.
            self._own.found(self.row())
        if not self._own.knows(self.row()):
            raise failure
        if self._count == len(FENCED_WAITS_SECONDS):
            raise _fenced_too_often(failure, self._count + 1) from failure
        wait = FENCED_WAITS_SECONDS[self._count]
        self._count += 1
        self._again(f"fenced, but no other sender wrote to the ledger; looking again in {wait:.0f} s")
        self._sleep(wait)
        if not self._own.knows(self.row()):
            raise failure

    def row(self) -> LedgerEntry | None:
        """The ledger's newest, also of a transaction that is open or that Kafka never ended."""
        return self._ledger.hidden(self._shard) or self._ledger.read(self._shard)


def replaced() -> FencedError:
    """The error for a sender that stood still for too long and was replaced."""
    return fenced("it went on from the ledger while this one stood still for longer than transaction.timeout.ms")


def _fenced_too_often(failure: FencedError, times: int) -> FencedError:
    return FencedError(
        f"this sender was fenced {times} times in a row, and the ledger shows no row of another one; at last: "
        f"{failure.message}",
        next_step="see that only one instance sends this publication under this name and that brokers are healthy, "
        "then clear the task: it goes on from the ledger",
        alert="another sender took over",
    )
