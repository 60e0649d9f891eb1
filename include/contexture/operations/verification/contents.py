"""The content hash of a record's value, in the forms that have the whole content; Contexture's own headers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from io import BytesIO
from itertools import islice
from typing import Final

from contexture.events import content_hash, parse_json
from contexture.kafka import TopicRecord
from contexture.publications import NgsiPublication, Publication
from contexture.storage.schemas import EVENT_TIME_HEADER

ContentReader = Callable[[bytes], bytes]
"""Gives the content hash of a value; what can't be read is equal to nothing."""

UNREADABLE: Final = b""
_DIGEST_BYTES: Final = 16
_IDENTIFIERS: Final = ("id", "type")


def content_reader(publication: Publication) -> ContentReader | None:
    """Returns what reads the content hash of a publication's values; None where no value holds the whole content.

    What Cygnus' lines, NGSIv1 and NGSI-LD say of an entity can't be turned back into what was read.
    """
    structured = publication.message.envelope == "cloudevents-structured"
    if publication.message.format == "sdmx":
        return _structure_in_event if structured else _structure
    if publication.message.format != "ngsiv2":
        return None
    by_attribute = publication.splits_by_attribute
    if by_attribute and NgsiPublication.of(publication).source.api != "ngsiv2":
        # Several instances of an attribute have names of their own in state.
        return None
    return lambda value: _entity(value, by_attribute=by_attribute, structured=structured)


def canonical_hash(value: bytes) -> bytes:
    """Returns the content hash of a JSON value, whatever it holds; what cannot be read is equal to nothing."""
    try:
        return content_hash(parse_json(value))
    except (ValueError, TypeError, RecursionError):
        return UNREADABLE


def digest(value: bytes) -> bytes:
    """Sixteen bytes that represent a value."""
    return blake2b(value, digest_size=_DIGEST_BYTES).digest()


def place_of(topic: str, key: bytes | None) -> bytes:
    """Sixteen bytes that represent a key of a topic; no key is another one than an empty key."""
    made = blake2b(digest_size=_DIGEST_BYTES)
    made.update(topic.encode())
    made.update(b"\0" if key is None else b"\1" + key)
    return made.digest()


def _entity(value: bytes, *, by_attribute: bool, structured: bool) -> bytes:
    try:
        read = parse_json(value)
    except (ValueError, TypeError, RecursionError):
        return UNREADABLE
    if structured and isinstance(read, dict):
        read = read.get("data")
    if not isinstance(read, dict):
        return UNREADABLE
    if by_attribute:
        read = {name: member for name, member in read.items() if name not in _IDENTIFIERS}
    return content_hash(read)


def structure_in_value(value: bytes, *, structured: bool = False) -> tuple[bytes, tuple[str, ...]]:
    """The content hash of the one structure in a value, and the URNs that it refers to.

    Args:
        value: a structure message, or what this instance sends as one.
        structured: it lies in an event in structured mode.
    """
    from contexture.records.messages.envelopes import message_in
    from contexture.sources.sdmx import StructureMessageError, UnsplittableFormatError, split

    media_type = None
    try:
        if structured:
            value, media_type = message_in(value)
        artefacts = list(islice(split(BytesIO(value), media_type), 2))
    except UnsplittableFormatError:
        return sha256(value).digest(), ()
    except (StructureMessageError, ValueError, RecursionError):
        return UNREADABLE, ()
    return (artefacts[0].content_hash, artefacts[0].references) if len(artefacts) == 1 else (UNREADABLE, ())


def _structure_in_event(value: bytes) -> bytes:
    return structure_in_value(value, structured=True)[0]


def _structure(value: bytes) -> bytes:
    return structure_in_value(value)[0]


OWN_HEADERS: Final = ("contexture-", "contexture_")
"""What names of Contexture's own marks begin with, such as that of a backfill: a source says nothing of them."""


def foreign_headers(record: TopicRecord) -> bool:
    """Returns whether a record has a header that is no mark of Contexture's own."""
    return any(not name.startswith(OWN_HEADERS) for name, _ in record.headers)


def parse_time(text: str | None) -> datetime | None:
    """Returns a moment in UTC; None where a text is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None


def record_time_ms(record: TopicRecord) -> int | None:
    """Returns a record's own time, in milliseconds since 1970."""
    return record.timestamp_ms


def event_time_ms(record: TopicRecord) -> int | None:
    """Returns the time in the header of a history's record, in milliseconds since 1970; None where it has none."""
    text = dict(record.headers).get(EVENT_TIME_HEADER) or b""
    return int(text) if text.isdigit() else None
