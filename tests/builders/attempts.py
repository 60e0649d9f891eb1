"""Failed sends as the tasks note them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from builders.outboxes import NOON
from contexture.storage.delivery import SendAttempts


def failed_send(outbox: str, *, attempt: int = 1, shard: int = 1, **changes: Any) -> SendAttempts:
    """The brokers were away, and the next attempt is due five seconds after noon."""
    given: dict[str, Any] = {
        "outbox": outbox,
        "shard": shard,
        "attempt": attempt,
        "allowed": 11,
        "state": "waiting",
        "next_at": NOON + timedelta(seconds=5),
        "failed_at": NOON,
        "intent": "retry",
        "message": "no broker. Next: wait",
        "failed": attempt,
    }
    return SendAttempts.model_validate(given | changes)
