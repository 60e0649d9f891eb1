"""Contexture's own events as records of Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

from contexture.operations.events import ToldEvent
from contexture.records.cloudevents import Mode, Record, encode
from contexture.records.cloudevents.values import timestamp

SOURCE: Final = "/operations"
"""The `source` of all of them."""

_MODES: Final[dict[str, Mode]] = {"cloudevents-binary": "binary", "cloudevents-structured": "structured"}


def records(
    events: Iterable[ToldEvent], envelope: Literal["none", "cloudevents-binary", "cloudevents-structured"]
) -> Iterator[Record]:
    """The record of each event; its key is the publication's name, so that what is about one stays in order.

    Args:
        events: as the operational tables keep them.
        envelope: `message.envelope` of the publication that tells them; not `none`.
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
            # The table's own text, byte for byte: what is sent again is the same.
            "data": event.data.encode(),
        }
        yield encode(attributes, mode=mode, key=event.publication)
