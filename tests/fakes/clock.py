"""A clock that moves when it is read."""

from __future__ import annotations


class TickingClock:
    """Moves a second with every look."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now
