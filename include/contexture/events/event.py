"""The event: an upsert or a delete of one identity."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from contexture.events.identity import AttributeName, ContextIdentity, StructureIdentity

Operation = Literal["upsert", "delete"]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing to tell.

    Attributes:
        operation: `upsert` carries the whole body, `delete` none.
        identity: whose event it is.
        attribute: set where the event tells of one attribute only.
        body: the source's own bytes, untouched; None for a delete.
        modified_at: the source's time of the change, UTC, where it gives one.
        received_at: when the page or notification with it arrived, UTC; the clock of batches.
        source_transaction: the registry's transaction, where there is one.
        content_hash: SHA-256 of the canonical body; empty for a delete.
    """

    operation: Operation
    identity: ContextIdentity | StructureIdentity
    attribute: AttributeName | None
    body: bytes | None
    modified_at: datetime | None
    received_at: datetime
    source_transaction: int | None = None
    content_hash: bytes = b""
