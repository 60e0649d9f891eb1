"""What the test of a connection found, step by step."""

from __future__ import annotations

from collections.abc import Callable

from contexture.outbox.manifest import Document


class Step(Document):
    """One step; `passed` is None when it was not tried, `remedy` is what to do."""

    name: str
    passed: bool | None
    detail: str
    seconds: float
    remedy: str = ""


class Outcome(Document):
    """What the test found. `target`: what the connection leads to, without secrets."""

    connection: str
    kind: str
    target: str
    unreachable: bool
    steps: tuple[Step, ...]

    @property
    def passed(self) -> bool:
        """Whether something was reached, and no step failed."""
        return not self.unreachable and not any(step.passed is False for step in self.steps)


Told = Callable[[Step], None]
"""Who hears of each step as soon as it is done."""


def untold(step: Step) -> None:
    """Nobody does."""
