"""How a sender tells what it is doing, so that nobody watches a silent task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Step = Literal["connecting", "sending", "waiting", "again", "done"]


@dataclass(frozen=True, slots=True)
class SendProgress:
    """Where the sending of one shard stands.

    Attributes:
        step: what is going on; `waiting` is for the brokers, `again` is a transaction that is done again.
        shard: which shard.
        position: the next position to be committed.
        records: how many the shard holds.
        detail: one sentence for people.
    """

    step: Step
    shard: int
    position: int
    records: int
    detail: str


class Progress(Protocol):
    """Called now and then while sending; must return soon and not raise."""

    def __call__(self, progress: SendProgress, /) -> None: ...


def silent(progress: SendProgress, /) -> None:
    """Tells nobody."""
