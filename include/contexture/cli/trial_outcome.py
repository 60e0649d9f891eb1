"""What the test of a connection found, step by step."""

from __future__ import annotations

from collections.abc import Callable

from contexture.storage.manifests import Document


class Step(Document):
    """One step; `passed` is None when it was not tried, `remedy` is what to do."""

    name: str
    passed: bool | None
    detail: str
    seconds: float
    remedy: str = ""

    @property
    def verdict(self) -> str:
        """`works`, `failed` or `not tried`."""
        return {True: "works", False: "failed", None: "not tried"}[self.passed]

    def sentence(self) -> str:
        """The step on one line: its verdict, its time, what was found and what to do."""
        remedy = f" Next: {self.remedy}." if self.remedy else ""
        return f"{self.name}: {self.verdict} ({self.seconds:.2f} s): {self.detail}.{remedy}"


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

    def text(self) -> str:
        """All of it for people, a line for the whole and one for each step; what failed comes first."""
        in_order = sorted(self.steps, key=lambda step: _URGENCY[step.passed])
        verdict = "it works" if self.passed else "it can't be reached" if self.unreachable else "it does not work"
        return "\n".join([f"{self.target}: {verdict}.", *(step.sentence() for step in in_order)])


_URGENCY = {False: 0, None: 1, True: 2}


Told = Callable[[Step], None]
"""Who hears of each step as soon as it is done."""


def untold(step: Step) -> None:
    """Nobody does."""
