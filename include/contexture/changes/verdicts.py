"""What prepare finds about one event of a snapshot."""

from __future__ import annotations

from enum import IntEnum


class Verdict(IntEnum):
    """What prepare found about one event of the snapshot."""

    SEND = 0
    UNCHANGED = 1
    QUARANTINED = 2
    PRESENT = 3
    DELETE = 4
    SUPERSEDED = 5
