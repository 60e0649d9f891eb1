"""Failed sends of an outbox, on storage: they outlive the task, the scheduler, and the run.

Each shard has a document of its own, so that shards sent beside each other never overwrite each other's count.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from contexture.storage.document import Versioned
from contexture.storage.layout import PublicationFolder
from contexture.storage.storage import Storage

AttemptState = Literal["waiting", "used up", "stopped", "sent"]


class SendAttempts(Versioned):
    """Where the attempts to send one shard stand.

    Attributes:
        attempt: the last attempt that failed, counted from 1; a new budget begins again at 1.
        allowed: how many attempts there are, `batch_ttl` + 1; None when there is no end of them.
        state: `waiting` for the next attempt; `used up`; `stopped` by what no attempt can heal; `sent` in the end.
        next_at: when the next attempt is due; None when none is.
        failed_at: when the last one failed.
        intent: of the error, as in `contexture.errors`.
        message: what happened and what to do; never data, never a secret.
        failed: all failed attempts of this shard, over all budgets.
    """

    format: int = 1
    outbox: str
    shard: int
    attempt: int
    allowed: int | None
    state: AttemptState
    next_at: datetime | None
    failed_at: datetime
    intent: str
    message: str
    failed: int

    @property
    def is_open(self) -> bool:
        """Whether the shard is still to be sent."""
        return self.state != "sent"

    def told(self) -> str:
        """For people: `attempt 3 of 11, next at 12:40:05Z`."""
        allowed = "without end" if self.allowed is None else str(self.allowed)
        then = f"next at {self.next_at:%H:%M:%SZ}" if self.next_at else self.state
        return f"attempt {self.attempt} of {allowed}, {then}"


def most_urgent(sends: Sequence[SendAttempts]) -> SendAttempts | None:
    """The shard that a person should hear of first: one that waits no more, else the one that failed most."""
    unsent = [each for each in sends if each.is_open]
    return max(unsent, key=lambda each: (each.state != "waiting", each.attempt), default=None)


class AttemptLog:
    """The failed sends of one publication's outboxes."""

    def __init__(self, storage: Storage, publication: str) -> None:
        self._storage = storage
        self._folder = PublicationFolder(publication)

    def of_shard(self, outbox: str, shard: int) -> SendAttempts | None:
        """What is noted of a shard; None when no send of it has failed."""
        path = self._folder.shard_attempts(outbox, shard)
        try:
            return SendAttempts.from_file(self._storage, path)
        except FileNotFoundError:
            return None

    def of_outbox(self, outbox: str) -> tuple[SendAttempts, ...]:
        """What is noted of every shard that failed at least once, by number."""
        folder = self._folder.attempts(outbox)
        paths = (f"{folder}/{name}" for name in self._storage.files(folder, ".json"))
        found = [SendAttempts.from_file(self._storage, path) for path in paths]
        return tuple(sorted(found, key=lambda each: each.shard))

    def keep(self, attempts: SendAttempts) -> None:
        """Puts the new standing of a shard in place."""
        self._storage.write(self._folder.shard_attempts(attempts.outbox, attempts.shard), attempts.to_json())

    def forget(self, outbox: str) -> None:
        """Removes what is noted: the next send is due at once and has all its attempts."""
        self._storage.remove(self._folder.attempts(outbox))
