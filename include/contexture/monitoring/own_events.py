"""Contexture's own events, and their records for Kafka.

Names, counts, times and sentences for people; never data of a source, never a secret. The page
docs/reference/operations-events.md describes them for consumers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Final, Literal

from pydantic import JsonValue

from contexture.records.cloudevents import Mode, Record, encode
from contexture.records.cloudevents.values import timestamp

_ID_BYTES: Final = 16


class EventType(StrEnum):
    """What happened; the `type` of the CloudEvent."""

    RUN_STARTED = "contexture.operations.run.started"
    RUN_SUCCEEDED = "contexture.operations.run.succeeded"
    RUN_FAILED = "contexture.operations.run.failed"
    SENDING_STOPPED = "contexture.operations.sending.stopped"
    CONFIGURATION_CHANGED = "contexture.operations.configuration.changed"
    OUTBOX_ABANDONED = "contexture.operations.outbox.abandoned"
    ACTION_PERFORMED = "contexture.operations.action.performed"


MEMBERS: Final[Mapping[EventType, tuple[str, ...]]] = {
    EventType.RUN_STARTED: ("run_id", "run_type", "mode", "sequence", "why", "triggered_by", "reason", "dry_run"),
    EventType.RUN_SUCCEEDED: ("run_id", "outbox", "concluded", "counts"),
    EventType.RUN_FAILED: ("run_id", "task", "kind", "message", "next_step"),
    EventType.SENDING_STOPPED: ("outbox", "shard", "attempt", "attempts_allowed", "state", "message"),
    EventType.CONFIGURATION_CHANGED: ("run_id", "fingerprint", "fingerprint_before", "mode"),
    EventType.OUTBOX_ABANDONED: ("outbox", "reason", "abandoned_by"),
    EventType.ACTION_PERFORMED: ("who", "action", "subject", "reason", "outcome", "run_id"),
}
"""The members of each event's data: every event of the type has all of them, null where one is unknown."""


@dataclass(frozen=True, slots=True)
class OwnEvent:
    """An event about Contexture itself, before it is stored.

    Attributes:
        publication: the one whose run or outbox it is about.
        at: when, with a time zone.
        occasion: distinguishes it from others of its type, such as the run: the same occasion is the same event.
        data: the members that `MEMBERS` names.
    """

    type: EventType
    publication: str
    at: datetime
    occasion: str
    data: Mapping[str, JsonValue]

    def __post_init__(self) -> None:
        if tuple(self.data) != MEMBERS[self.type]:
            raise ValueError(f"{self.type} has other members than {', '.join(self.data)}")

    @property
    def id(self) -> str:
        """The id of the event: the same for the same type, publication and occasion."""
        parts = (self.type, self.publication, self.occasion)
        return blake2b("\n".join(parts).encode(), digest_size=_ID_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event in the operational tables.

    Attributes:
        position: in the order of all events; grows, also in a new database.
        id: of the CloudEvent.
        data: as JSON text.
    """

    position: int
    id: str
    type: str
    publication: str
    at: datetime
    data: str


SOURCE: Final = "/operations"
"""The `source` of all of them."""

_MODES: Final[dict[str, Mode]] = {"cloudevents-binary": "binary", "cloudevents-structured": "structured"}


def records(
    events: Iterable[StoredEvent], envelope: Literal["none", "cloudevents-binary", "cloudevents-structured"]
) -> Iterator[Record]:
    """Returns the record of each event; its key is the publication's name, so that its events stay in order.

    Args:
        events: from the operational tables.
        envelope: `message.envelope` of the publication that sends them; not `none`.
    """
    mode = _MODES[envelope]
    for event in events:
        attributes = {
            "specversion": "1.0",
            "id": event.id,
            "source": SOURCE,
            "type": event.type,
            "subject": event.publication,
            "time": timestamp(event.at),
            "datacontenttype": "application/json",
            # The table's own text, byte for byte, because an event that is sent again must be the same.
            "data": event.data.encode(),
        }
        yield encode(attributes, mode=mode, key=event.publication)
