"""CloudEvents 1.0 on Kafka: events to records and back (Kafka protocol binding 1.0.3, JSON event format).

>>> event = {"specversion": "1.0", "id": "17", "source": "/cars", "type": "moved", "data": {"speed": 5}}
>>> record = encode(event, mode="structured", key="car1")
>>> decode(record.headers, record.key, record.value) == event
True
"""

from __future__ import annotations

from contexture.records.cloudevents.encoding import decode, encode, partition_key
from contexture.records.cloudevents.record import (
    NO_DATA,
    AttributeNameWarning,
    CloudEventError,
    Mode,
    Record,
)
from contexture.records.cloudevents.template import Template

__all__ = [
    "NO_DATA",
    "AttributeNameWarning",
    "CloudEventError",
    "Mode",
    "Record",
    "Template",
    "decode",
    "encode",
    "partition_key",
]
