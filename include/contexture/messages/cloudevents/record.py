"""What Kafka gets of an event, and the words that stand in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, Literal, NamedTuple

Mode = Literal["binary", "structured"]
Event = Mapping[str, object]
"""An event as in the CloudEvents JSON format. Without the member `data` (or `data_base64`) it has no data; `data: None`
is the JSON value null, which is data. `data` may also be bytes, which are taken as they are."""

KeyMapper = Callable[[Event], "str | bytes | None"]

PREFIX: Final = "ce_"
CONTENT_TYPE: Final = "content-type"
FAMILY: Final = "application/cloudevents"
STRUCTURED_JSON: Final = "application/cloudevents+json"
SPEC_VERSION: Final = "1.0"

DATA: Final = "data"
DATA_BASE64: Final = "data_base64"
DATA_MEMBERS: Final = frozenset((DATA, DATA_BASE64))
REQUIRED: Final = ("specversion", "id", "source", "type")


class NoData(Enum):
    """That an event has no data, where `None` would be the JSON value null."""

    NO_DATA = 0

    def __repr__(self) -> str:
        return self.name


NO_DATA: Final = NoData.NO_DATA


class Record(NamedTuple):
    """One Kafka record, fit for `producer.produce(topic, value, key, headers=headers)` of confluent-kafka.

    Attributes:
        headers: names and bytes, in the order in which they are sent.
        value: None is a tombstone, which compaction takes for the deletion of the key; empty bytes are none.
        key: None where the record has no key.
    """

    headers: list[tuple[str, bytes]]
    value: bytes | None
    key: bytes | None
