"""What the test of a connection found, step by step."""

from __future__ import annotations

from contexture.outbox.manifest import Document


class Step(Document):
    """One step; `passed` is None when it was not tried."""

    name: str
    passed: bool | None
    detail: str
    seconds: float


class Outcome(Document):
    """What the test found. `target`: what the connection leads to, without secrets."""

    connection: str
    kind: str
    target: str
    unreachable: bool
    steps: tuple[Step, ...]

    @property
    def passed(self) -> bool:
        """Whether every step worked."""
        return all(step.passed for step in self.steps)
