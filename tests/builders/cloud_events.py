"""A valid event, and others that differ from it in what a test is about."""

from __future__ import annotations

from typing import Any

import orjson

from contexture.records.cloudevents import Mode, Record, encode

EVENT: dict[str, object] = {"specversion": "1.0", "id": "17", "source": "/cars", "type": "moved"}


def event(**changes: Any) -> dict[str, object]:
    """The least event there is, with attributes (and data) added or replaced."""
    return {**EVENT, **changes}


def without(*names: str) -> dict[str, object]:
    """The least event, less these attributes."""
    return {name: value for name, value in EVENT.items() if name not in names}


def record(mode: Mode, **changes: Any) -> Record:
    """The record of such an event."""
    return encode(event(**changes), mode=mode)


def headers(**changes: Any) -> dict[str, bytes]:
    """Returns the headers of such an event in binary mode, each of which occurs once."""
    found = record("binary", **changes).headers
    assert len(dict(found)) == len(found)
    return dict(found)


def body(**changes: Any) -> dict[str, Any]:
    """The value of such an event in structured mode."""
    value = record("structured", **changes).value
    assert value is not None
    read: dict[str, Any] = orjson.loads(value)
    return read
