"""The moments of the protocol at which a sender can be."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Moment(StrEnum):
    """A moment of the protocol, in the order in which a sender passes them."""

    BEFORE_INIT = "before init"
    AFTER_INIT = "after init"
    AFTER_BEGIN = "after begin"
    MID_PRODUCE = "mid produce"
    BEFORE_LEDGER = "before ledger row"
    BEFORE_COMMIT = "before commit"
    IN_COMMIT = "in commit"
    AFTER_COMMIT = "after commit"


MOMENTS: Final = tuple(Moment)

INSIDE: Final = frozenset({Moment.MID_PRODUCE, Moment.BEFORE_LEDGER, Moment.BEFORE_COMMIT})
"""Between the first record of a transaction and the call of commit: brokers hold an open transaction then."""
