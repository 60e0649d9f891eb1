"""Prepared encoders, which check and write once what all events of a route share.

>>> cars = Template(
...     {"specversion": "1.0", "source": "/cars", "type": "moved", "datacontenttype": "application/json"},
...     varying=("id", "subject"),
...     mode="binary",
... )
>>> cars.record(("17", "car1"), {"speed": 5}, key="car1").value
b'{"speed":5}'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from contexture.records.cloudevents.data import JSON_TYPE, as_bytes, json_bytes, json_members
from contexture.records.cloudevents.encoding import (
    STRUCTURED_HEADER,
    Key,
    attribute_json,
    attribute_text,
    key_bytes,
    no_such_mode,
)
from contexture.records.cloudevents.record import (
    CONTENT_TYPE,
    DATA,
    DATA_MEMBERS,
    NO_DATA,
    PREFIX,
    REQUIRED,
    Mode,
    Record,
    header_name,
    refused,
)
from contexture.records.cloudevents.values import (
    CORE,
    PLAIN,
    UTF_8,
    content_type_of,
    json_of,
    media_type,
    text_of,
    utc_bytes,
)


class Template:
    """The encoder of events that differ in a few attributes; its records equal those of `encode`.

    Args:
        constant: the attributes that all events share, `datacontenttype` among them if they have one.
        varying: the names of the others.
        mode: `binary` or `structured`.

    Attributes:
        varying: the names of the attributes that differ.
        labels: the headers of the varying attributes, in their order.
        constant_headers: the headers that all events with data share; in structured mode the content type alone.

    Raises:
        CloudEventError: a constant attribute is wrong, a name is in both, or a required one is in neither.
        ConfigurationError: there is no such mode on Kafka.
    """

    def __init__(self, constant: Mapping[str, object], varying: Sequence[str], mode: Mode) -> None:
        if mode not in ("binary", "structured"):
            raise no_such_mode(mode)
        constant = {name: value for name, value in constant.items() if value is not None}
        _check_names(constant, varying)
        self.varying = tuple(varying)
        self.labels = tuple(map(header_name, varying))
        self._structured = mode == "structured"
        self._members: dict[str, object] = {name: attribute_json(name, value) for name, value in constant.items()}
        self._attributes = _headers(constant)
        declared = constant.get("datacontenttype")
        self._declared = declared if isinstance(declared, str) else None
        self._content_type = [] if self._structured else _content_type(self._declared)
        media = media_type(self._declared or JSON_TYPE)
        self._plain = media is not None and media.is_json and media.charset in {None, UTF_8}
        self._texts = tuple(_Varying.of(name, text_of) for name in varying)
        self._values = tuple(_Varying.of(name, json_of) for name in varying)

    @property
    def constant_headers(self) -> list[tuple[str, bytes]]:
        """Returns the headers that all events with data share."""
        return [STRUCTURED_HEADER] if self._structured else self._attributes + self._content_type

    def record(self, values: Sequence[object], data: object = NO_DATA, *, key: Key = None) -> Record:
        """Returns the record of one event.

        Args:
            values: of the varying attributes, in their order; None where the event hasn't got one.
            data: as `data` of an event for `encode`; an `orjson.Fragment` in it is not checked.
            key: of the record.

        Raises:
            CloudEventError: as `encode`.
        """
        if self._structured:
            return Record([STRUCTURED_HEADER], self.json_event(values, data), key_bytes(key))
        headers = self._attributes.copy()
        for (_, label, is_plain, may_be_time, text), value in zip(self._texts, values, strict=True):
            if is_plain and type(value) is str and value and value.isascii() and value.isprintable():
                headers.append((label, value.encode()))
            elif may_be_time and type(value) is datetime and value.tzinfo is UTC:
                headers.append((label, utc_bytes(value)))
            elif value is not None:
                headers.append((label, text(value).encode()))
            else:
                _check_absence(label)
        if data is NO_DATA:
            return Record(headers + self._content_type, None, key_bytes(key))
        headers += self._content_type or _implied_type(data)
        return Record(headers, self._bytes(data), key_bytes(key))

    def header_values(self, values: Sequence[object]) -> tuple[bytes | None, ...]:
        """Returns the values of the headers `labels`, for headers as columns; None where there is none.

        Raises:
            CloudEventError: as `encode`.
        """
        written: list[bytes | None] = []
        for (_, label, is_plain, may_be_time, text), value in zip(self._texts, values, strict=True):
            if is_plain and type(value) is str and value and value.isascii() and value.isprintable():
                written.append(value.encode())
            elif may_be_time and type(value) is datetime and value.tzinfo is UTC:
                written.append(utc_bytes(value))
            elif value is not None:
                written.append(text(value).encode())
            else:
                _check_absence(label)
                written.append(None)
        return tuple(written)

    def json_event(self, values: Sequence[object], data: object = NO_DATA) -> bytes:
        """Returns the value of the record of one event in structured mode; parameters as of `record`."""
        members = self._members.copy()
        for (name, label, is_plain, _, json), value in zip(self._values, values, strict=True):
            if is_plain and type(value) is str and value and value.isascii() and value.isprintable():
                members[name] = value
            elif value is not None:
                members[name] = json(value)
            else:
                _check_absence(label)
        if self._plain and type(data) is dict:
            members[DATA] = data
        else:
            members |= json_members(data, self._declared)
        return json_bytes(members, data)

    def _bytes(self, data: object) -> bytes:
        if isinstance(data, bytes):
            return data
        return json_bytes(data, data) if self._plain else as_bytes(data, self._declared)


class _Varying(NamedTuple):
    """An attribute that varies. Where it is plain, only the rules of every text apply to its texts."""

    name: str
    label: str
    is_plain: bool
    may_be_time: bool
    write: Callable[[object], Any]

    @classmethod
    def of(cls, name: str, write: Callable[[str, object], str | int]) -> _Varying:
        """Returns the attribute, written by its own rules or else by `write`."""
        is_plain = name not in CORE or name in PLAIN
        may_be_time = name not in CORE or name == "time"
        return cls(name, header_name(name), is_plain, may_be_time, CORE.get(name) or partial(write, name))


def _check_names(constant: Mapping[str, object], varying: Sequence[str]) -> None:
    for name in (*constant, *varying):
        header_name(name)
        if name in DATA_MEMBERS:
            raise refused(name, "cannot be an attribute")
    for name in varying:
        if name in constant or list(varying).count(name) > 1:
            raise refused(name, "is in a template twice", next_step="make it constant or varying")
        if name == "datacontenttype":
            raise refused(name, "cannot vary", next_step="make a template for each media type")
    for name in REQUIRED:
        if name not in constant and name not in varying:
            raise refused(name, "is missing")


def _check_absence(label: str) -> None:
    name = label.removeprefix(PREFIX)
    if name in REQUIRED:
        raise refused(name, "is missing")


def _headers(constant: Mapping[str, object]) -> list[tuple[str, bytes]]:
    return [
        (header_name(name), attribute_text(name, value).encode())
        for name, value in constant.items()
        if name != "datacontenttype"
    ]


def _content_type(declared: str | None) -> list[tuple[str, bytes]]:
    return [] if declared is None else [(CONTENT_TYPE, content_type_of(declared).encode())]


def _implied_type(data: object) -> list[tuple[str, bytes]]:
    return [] if isinstance(data, bytes | bytearray | memoryview) else [(CONTENT_TYPE, JSON_TYPE.encode())]
