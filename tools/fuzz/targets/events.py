"""CloudEvents in records of Kafka, in both content modes."""

from __future__ import annotations

from collections.abc import Mapping

from contexture.records.cloudevents import CloudEventError, decode, encode
from contexture.records.messages.envelopes import message_in
from tools.fuzz.target import Target, request, taken_apart

_BINARY = {
    "ce_specversion": "1.0",
    "ce_id": "A234-1234-1234",
    "ce_source": "/mycontext",
    "ce_type": "com.example.someevent",
    "ce_time": "2018-04-05T17:31:00Z",
    "ce_partitionkey": "k",
    "ce_dataschema": "https://example.org/s",
}
_EVENT = (
    b'{"specversion":"1.0","id":"A234","source":"/c","type":"t","time":"2018-04-05T17:31:00Z","extension":5,'
    b'"datacontenttype":"application/json","data":{"a":[1,2.50,null,"x"]}}'
)
_TYPES = (b"application/xml", b"text/plain; charset=utf-16", b'application/json; charset="latin1"', b"a/b+json")
_WORDS = (
    b"ce_id: ",
    b"ce_time: 2016-12-31T23:59:60Z",
    b"data_base64",
    b"datacontenttype",
    b"charset=idna",
    b"charset=punycode",
    b"charset=hex",
    b"charset=undefined",
    b"application/cloudevents+json",
    b"application/cloudevents-batch+json",
    *_TYPES,
)


def _decoded(data: bytes) -> object:
    _, headers, body = taken_apart(data)
    pairs = [(name, value.encode("latin-1")) for name, value in headers.items()]
    event = decode(pairs, None, body)
    again = decode(*_record(event))
    if set(again) != set(event):
        raise AssertionError("an event is another one when it is written and read again")
    return "data" in event, "data_base64" in event, "datacontenttype" in event


def _record(event: Mapping[str, object]) -> tuple[list[tuple[str, bytes]], bytes | None, bytes | None]:
    record = encode(event, mode="structured")
    return record.headers, record.key, record.value


def _message(data: bytes) -> object:
    try:
        return message_in(data)[1] is None
    except ValueError:
        return "refused"


def _inputs() -> Mapping[str, bytes]:
    structured = {"content-type": "application/cloudevents+json; charset=UTF-8"}
    found = {
        "binary": request({**_BINARY, "content-type": "application/json"}, b'{"a":1}'),
        "structured": request(structured, _EVENT),
        "base64": request(structured, _EVENT.replace(b'"data":{"a":[1,2.50,null,"x"]}', b'"data_base64":"aGk="')),
    }
    for media_type in _TYPES:
        found[media_type.decode()] = request({**_BINARY, "content-type": media_type.decode()}, "é".encode("utf-16"))
    return found


TARGETS = (
    Target("cloudevents", "CloudEvents in records", _decoded, _inputs, "request", _WORDS, (CloudEventError,)),
    Target("event-messages", "messages in structured events", _message, lambda: {"event": _EVENT}, "json", _WORDS),
)
