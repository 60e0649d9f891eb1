"""CloudEvents around the values of one publication: `message.envelope`.

Headers that vary from record to record are columns, as in outboxes; an outbox stores the constant ones once. Structures
come in any form that the registry writes, so that their media type varies too.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import msgspec
import orjson

from contexture.errors import DefectError, RejectedError
from contexture.events import AttributeName, ContextIdentity, Operation, StructureIdentity, identity_key
from contexture.publications import NgsiPublication, Publication, SdmxPublication
from contexture.records.cloudevents.change_events import (
    CONTEXT_ATTRIBUTES,
    RunReference,
    context_values,
    structure_attributes,
)
from contexture.records.cloudevents.data import as_bytes, is_json
from contexture.records.cloudevents.record import CONTENT_TYPE, PREFIX, SPEC_VERSION, Mode
from contexture.records.cloudevents.template import Template

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

PARTITION_KEY: Final = "partitionkey"
"""The extension of CloudEvents that names what events are partitioned by; only with `message.partition_key`."""

_NO_PARTITION_KEY: Final = "none"
_SPEC_VERSION_HEADER = f"{PREFIX}specversion"
_LARGEST_LENGTHS = 10
"""Bytes that the lengths of a header's name and value take at most."""


class EncodedEnvelope(NamedTuple):
    """The value of a record, and the values of its headers in the order of `Envelope.columns`."""

    value: bytes
    headers: HeaderValues


class Envelope:
    """The envelope of one publication's records.

    A deletion is a record without a value in either mode, because only that deletes on a compacted topic. The binding
    allows each record its own mode, and one without a value can only be a binary one.

    Args:
        mode: of records with a value.
        connection: id of the connection to the source.
        media_type: of the values.
        partition_key: `message.partition_key` of the publication.

    Attributes:
        columns: the headers that vary from record to record.
        constant: the headers that all records carry.
    """

    def __init__(self, mode: Mode, *, connection: str, media_type: str, partition_key: str = _NO_PARTITION_KEY) -> None:
        self._connection = connection
        self._structured = mode == "structured"
        self._partition_key = partition_key
        constant = {"specversion": SPEC_VERSION}
        varying = _with_partition_key(CONTEXT_ATTRIBUTES, partition_key)
        self._deletion = Template(constant, varying, "binary")
        self._upsert = Template({**constant, "datacontenttype": media_type}, varying, mode)
        self._content_type = dict(self._upsert.constant_headers)[CONTENT_TYPE]
        version = dict(self._deletion.constant_headers)[_SPEC_VERSION_HEADER]
        # In structured mode only tombstones have it in a header.
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
        occasion: RunReference,
        key: bytes | None = None,
    ) -> EncodedEnvelope:
        """Returns the value of an event, and its headers; parameters as of `context_values`.

        Args:
            value: JSON that Contexture wrote.

        Raises:
            CloudEventError: the identity has characters that no event can show.
        """
        values = self._values("upsert", identity, attribute, content_hash, occasion, key)
        if self._structured:
            event = self._upsert.json_event(values, orjson.Fragment(value))
            return EncodedEnvelope(event, (*self._nothing, self._content_type))
        return EncodedEnvelope(value, (*self._upsert.header_values(values), self._content_type))

    def deletion(self, key: bytes, *, content_hash: bytes, occasion: RunReference) -> HeaderValues:
        """Returns the headers of a tombstone.

        They are all None where no event can show such an identity, which then was sent without an envelope: its
        tombstone has to be sent too.

        Args:
            key: the identity key of what is deleted.
            content_hash: of what is deleted.
            occasion: when it was last changed, or else what distinguishes this deletion.
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
        """Returns how many bytes a record's headers take at most, including those that all records carry."""
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
        occasion: RunReference,
        key: bytes | None,
    ) -> tuple[str | None, ...]:
        values = context_values(
            operation,
            identity,
            attribute,
            connection=self._connection,
            content_hash=content_hash,
            occasion=occasion,
            key=key,
        )
        if self._partition_key == _NO_PARTITION_KEY:
            return values
        if self._partition_key == "identity":
            return (*values, (key or identity_key(identity, attribute)).decode())
        # CloudEvents has no empty partitionkey: an entity without a type has none.
        return (*values, getattr(identity, self._partition_key) or None)


def envelope(publication: Publication) -> Envelope | None:
    """Returns the envelope of a broker publication's records; None where they have none.

    Raises:
        DefectError: they are structures, whose envelope is `structure_envelope`.
    """
    mode = MODES.get(publication.message.envelope)
    if mode is None:
        return None
    media_type = MEDIA_TYPES.get(publication.message.format)
    if media_type is None:
        raise DefectError(f"{publication.message.format} has an envelope of its own", next_step="report this")
    return Envelope(
        mode,
        connection=publication.source.connection,
        media_type=media_type,
        partition_key=NgsiPublication.of(publication).message.partition_key,
    )


def _with_partition_key(names: tuple[str, ...], partition_key: str) -> tuple[str, ...]:
    return names if partition_key == _NO_PARTITION_KEY else (*names, PARTITION_KEY)


_SCHEMA_HEADER = f"{PREFIX}dataschema"
_VARYING = ("id", "source", "type", "subject", "time", "dataschema")


class StructureContent(NamedTuple):
    """The content of an event about a structure.

    Attributes:
        urn: of the structure.
        media_type: of the message that holds it; None where it is unknown.
        content_hash: of its content, or of what is deleted.
        occasion: the registry's transaction and its time, or what else distinguishes the change.
    """

    urn: str
    media_type: str | None
    content_hash: bytes
    occasion: RunReference


class StructureEnvelope:
    """The envelope of one publication's records; a deletion is a record without a value in either mode.

    Args:
        mode: of records with a value.
        connection: id of the connection to the registry.
        partition_key: `message.partition_key` of the publication.

    Attributes:
        columns: the headers that vary from record to record.
        constant: the headers that all records carry.
        is_structured: the value holds the whole event.
    """

    def __init__(self, mode: Mode, *, connection: str, partition_key: str = _NO_PARTITION_KEY) -> None:
        self._connection = connection
        self._mode: Mode = mode
        self._partition_key = partition_key
        self._varying = _with_partition_key(_VARYING, partition_key)
        self._templates: dict[str | None, Template] = {}
        labels = self._template(None).labels
        self.is_structured = mode == "structured"
        self.columns: tuple[str, ...] = (*labels, CONTENT_TYPE)
        self.constant: tuple[tuple[str, str], ...] = ((_SPEC_VERSION_HEADER, SPEC_VERSION),)
        if self.is_structured:
            # Only tombstones have these in headers, and they have no schema.
            self.columns = (_SPEC_VERSION_HEADER, *(name for name in self.columns if name != _SCHEMA_HEADER))
            self.constant = ()

    def headers(self, content: StructureContent) -> HeaderValues:
        """Returns the values of `columns` for a structure's content.

        Raises:
            CloudEventError: no event can show its URN or media type.
        """
        template = self._template(content.media_type)
        content_type = dict(template.constant_headers).get(CONTENT_TYPE)
        if self.is_structured:
            return (*(None,) * (len(self.columns) - 1), content_type)
        return (*template.header_values(self._values("upsert", content)), content_type)

    def event(self, content: StructureContent, message: bytes) -> bytes:
        """Returns the value of a record in structured mode.

        Raises:
            CloudEventError: as `headers`.
        """
        return self._template(content.media_type).json_event(self._values("upsert", content), message)

    def check(self, urn: str, media_type: str | None) -> None:
        """Checks that events can show a structure.

        Raises:
            CloudEventError: its URN or media type has what no attribute may have.
        """
        content = StructureContent(urn, media_type, b"", RunReference())
        self._template(media_type).header_values(self._values("upsert", content))

    def deletion(self, content: StructureContent) -> HeaderValues:
        """Returns the values of `columns` for a tombstone; they are all None where no event can show such a URN.

        Such a structure was sent without an envelope, and has to be deleted too.
        """
        values = self._values("delete", content._replace(media_type=None))
        try:
            headers = self._template(None).header_values(values)
        except RejectedError:
            return (None,) * len(self.columns)
        if self.is_structured:
            shown = zip(self._varying, headers, strict=True)
            return (SPEC_VERSION.encode(), *(header for name, header in shown if name != "dataschema"), None)
        return (*headers, None)

    def size(self, headers: HeaderValues) -> int:
        """Returns how many bytes a record's headers take at most, including those that all records carry."""
        varying = zip(self.columns, headers, strict=True)
        named = [*((name, value.encode()) for name, value in self.constant), *varying]
        return sum(len(name) + len(value) + _LARGEST_LENGTHS for name, value in named if value is not None)

    def _template(self, media_type: str | None) -> Template:
        if media_type not in self._templates:
            # A publication requests one form; some registries respond in a few.
            constant = {"specversion": SPEC_VERSION, "datacontenttype": media_type}
            self._templates[media_type] = Template(constant, self._varying, self._mode)
        return self._templates[media_type]

    def _values(self, operation: Operation, content: StructureContent) -> tuple[str | None, ...]:
        attributes = structure_attributes(
            operation,
            StructureIdentity(content.urn),
            connection=self._connection,
            content_hash=content.content_hash,
            occasion=content.occasion,
            media_type=content.media_type,
        )
        if self._partition_key != _NO_PARTITION_KEY:
            attributes[PARTITION_KEY] = _part_of_urn(content.urn, self._partition_key)
        return tuple(attributes.get(name) for name in self._varying)


def _part_of_urn(urn: str, part: str) -> str:
    # Imported here, because publications of entities do not need the parsers of structures.
    from contexture.sources.sdmx.urn import Urn

    if part == "identity":
        return urn
    try:
        parsed = Urn.parse(urn)
    except ValueError:
        # What was sent under such a name has to be deletable too.
        return urn
    return parsed.agency if part == "agency" else parsed.class_name


class _Event(msgspec.Struct):
    """The data of a structured event."""

    datacontenttype: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"")
    data_base64: str | None = None


def message_in(event: bytes) -> tuple[bytes, str | None]:
    """Returns the message in a structured event, byte for byte as it was encoded, and its media type.

    Only white space around JSON is lost, because it cannot be distinguished from that of the event.

    Raises:
        ValueError: it is no such event.
    """
    try:
        read = msgspec.json.decode(event, type=_Event)
        if read.data_base64 is not None:
            return b64decode(read.data_base64, validate=True), read.datacontenttype
        raw, media_type = bytes(read.data), read.datacontenttype
        if raw and is_json(media_type):
            return raw, media_type
        return as_bytes(msgspec.json.decode(raw, type=str), media_type), media_type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RejectedError) as error:
        raise ValueError("it is not an event in structured mode that holds a message") from error


def structure_envelope(publication: Publication) -> StructureEnvelope | None:
    """Returns the envelope of a registry publication's records; None where they have none."""
    mode = MODES.get(publication.message.envelope)
    if mode is None:
        return None
    return StructureEnvelope(
        mode,
        connection=publication.source.connection,
        partition_key=SdmxPublication.of(publication).message.partition_key,
    )
