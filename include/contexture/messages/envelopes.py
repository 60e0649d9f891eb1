"""CloudEvents around the values of one publication: `message.envelope`.

What varies from record to record is laid out in columns, as outboxes hold headers; what doesn't is said once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, cast

import orjson

from contexture.errors import DefectError, RejectedError
from contexture.events import AttributeName, ContextIdentity, Operation
from contexture.messages.cloudevents.changes import CONTEXT_ATTRIBUTES, Occasion, context_values
from contexture.messages.cloudevents.record import CONTENT_TYPE, PREFIX, SPEC_VERSION, Mode
from contexture.messages.cloudevents.template import Template
from contexture.publications import Publication

HeaderValues = tuple[bytes | None, ...]

MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "ngsiv2": "application/json",
        "ngsiv1": "application/json",
        "cygnus-lines": "application/json",
        "ngsi-ld": "application/ld+json",
    }
)
"""`datacontenttype` by `message.format`."""

MODES: Mapping[str, Mode] = MappingProxyType({"cloudevents-binary": "binary", "cloudevents-structured": "structured"})
"""Content mode by `message.envelope`; none without an envelope."""

_SPEC_VERSION_HEADER = f"{PREFIX}specversion"
_LARGEST_LENGTHS = 10
"""Bytes that the lengths of a header's name and value take at most."""


class Enveloped(NamedTuple):
    """The value of a record, and the values of its headers in the order of `Envelope.columns`."""

    value: bytes
    headers: HeaderValues


class Envelope:
    """The envelope of one publication's records.

    A deletion is a record without a value in either mode, for only that deletes on a compacted topic. The binding
    lets each record choose its mode, and one without a value can only be a binary one.

    Args:
        mode: of records with a value.
        connection: id of the connection to the source.
        media_type: of the values.

    Attributes:
        columns: the headers that vary from record to record.
        constant: the headers that all records carry.
    """

    def __init__(self, mode: Mode, *, connection: str, media_type: str) -> None:
        self._connection = connection
        self._structured = mode == "structured"
        constant = {"specversion": SPEC_VERSION}
        self._deletion = Template(constant, CONTEXT_ATTRIBUTES, "binary")
        self._upsert = Template({**constant, "datacontenttype": media_type}, CONTEXT_ATTRIBUTES, mode)
        self._content_type = dict(self._upsert.constant_headers)[CONTENT_TYPE]
        version = dict(self._deletion.constant_headers)[_SPEC_VERSION_HEADER]
        # In structured mode only tombstones say it in a header.
        self._version = (version,) if self._structured else ()
        own = (_SPEC_VERSION_HEADER,) if self._structured else ()
        self.columns: tuple[str, ...] = (*own, *self._deletion.labels, CONTENT_TYPE)
        self.constant = () if self._structured else ((_SPEC_VERSION_HEADER, version.decode()),)
        self._constant_size = sum(len(name) + len(value) + _LARGEST_LENGTHS for name, value in self.constant)
        self._name_sizes = [len(name) + _LARGEST_LENGTHS for name in self.columns]
        self._nothing: HeaderValues = (None,) * (len(self.columns) - 1)

    def upsert(
        self,
        identity: ContextIdentity,
        attribute: AttributeName | None,
        value: bytes,
        *,
        content_hash: bytes,
        occasion: Occasion,
        key: bytes | None = None,
    ) -> Enveloped:
        """The value of an event, and its headers; parameters as of `context_values`.

        Args:
            value: JSON that Contexture wrote.

        Raises:
            CloudEventError: the identity has characters that no event can tell.
        """
        values = self._values("upsert", identity, attribute, content_hash, occasion, key)
        if self._structured:
            event = self._upsert.json_event(values, orjson.Fragment(value))
            return Enveloped(event, (*self._nothing, self._content_type))
        return Enveloped(value, (*self._upsert.header_values(values), self._content_type))

    def deletion(self, key: bytes, *, content_hash: bytes, occasion: Occasion) -> HeaderValues:
        """The headers of a tombstone.

        Args:
            key: the identity key of what is gone.
            content_hash: of what is gone.
            occasion: when it was last changed, or else what tells this deletion apart.

        Returns:
            Nothing but Nones where no event can tell such an identity, which then was sent without an envelope: the
            tombstone has to go out all the same.
        """
        service, path, entity_id, entity_type, *parts = cast("list[str]", orjson.loads(key))
        identity = ContextIdentity(service, path, entity_id, entity_type)
        attribute = AttributeName(parts[0], *parts[1:]) if parts else None
        values = self._values("delete", identity, attribute, content_hash, occasion, key)
        try:
            return (*self._version, *self._deletion.header_values(values), None)
        except RejectedError:
            return (None,) * len(self.columns)

    def size(self, headers: HeaderValues) -> int:
        """The bytes that a record's headers take at most, those that all records carry included."""
        total = self._constant_size
        for name_size, value in zip(self._name_sizes, headers, strict=True):
            if value is not None:
                total += name_size + len(value)
        return total

    def _values(
        self,
        operation: Operation,
        identity: ContextIdentity,
        attribute: AttributeName | None,
        content_hash: bytes,
        occasion: Occasion,
        key: bytes | None,
    ) -> tuple[str | None, ...]:
        return context_values(
            operation,
            identity,
            attribute,
            connection=self._connection,
            content_hash=content_hash,
            occasion=occasion,
            key=key,
        )


def envelope(publication: Publication) -> Envelope | None:
    """The envelope of a broker publication's records; None where they have none.

    Raises:
        DefectError: they are structures, whose envelope is `structure_envelope`.
    """
    mode = MODES.get(publication.message.envelope)
    if mode is None:
        return None
    media_type = MEDIA_TYPES.get(publication.message.format)
    if media_type is None:
        raise DefectError(f"{publication.message.format} has an envelope of its own", next_step="report this")
    return Envelope(mode, connection=publication.source.connection, media_type=media_type)
