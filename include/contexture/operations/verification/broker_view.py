"""A context broker as the records that topics should hold of it: by the rules, names and forms that runs use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import msgspec
import orjson

from contexture.errors import RejectedError
from contexture.events import AttributeName, ContextIdentity, content_hash, identity_key
from contexture.kafka import TopicRecord
from contexture.operations.verification.contents import (
    OWN_HEADERS,
    canonical_hash,
    event_time_ms,
    foreign_headers,
    parse_time,
    record_time_ms,
)
from contexture.operations.verification.source_view import (
    Difference,
    ExpectedRecord,
    Met,
    QuarantinedEntity,
    SourceHealth,
)
from contexture.publications import NgsiPublication
from contexture.publications.delivery import KEY_IDENTITY
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages.envelopes import Envelope, envelope
from contexture.records.messages.rendering import renderer
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.broker import Broker, EntityPage
from contexture.sources.ngsi.connect import Dialect, open_broker
from contexture.sources.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.sources.ngsi.entity_head import moment
from contexture.sources.ngsi.query import EntityQuery
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity, unreadable
from contexture.sources.ngsi.rules.values import coerce_numbers


def queries_of(publication: NgsiPublication) -> Iterator[EntityQuery]:
    """Gives a query for each service path, along the time of creation, which never moves."""
    source = publication.source
    # Scopes of NGSI-LD are selected at once, because an entity may have several.
    paths = (",".join(source.service_path),) if source.api == "ngsi-ld" else source.service_path
    for path in paths:
        yield EntityQuery.of_source(source, path, source.page_size)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_IDS_AT_ONCE: Final = 20
"""An id has up to 256 characters, and a URL some 8,000."""
_MAXIMUM_RECORD_BYTES: Final = 1_000_000
_LINE_TIME: Final = re.compile(rb'(\{"timestamp":)\d+(\}\],"body":)')
_IDENTITY: Final = 4
"""Members of an entity's identity key; an attribute's has more."""


class _Event(msgspec.Struct):
    """What is compared of a CloudEvent in structured mode."""

    data: msgspec.Raw
    time: str | None = None


class BrokerView:
    """The entities of one publication, read from its broker.

    Args:
        publication: whose.
        broker: a client of its service; who opened it closes it.
    """

    def __init__(self, publication: NgsiPublication, broker: Broker) -> None:
        self._publication, self._broker = publication, broker
        self._by_attribute = publication.topics.data_model == "dm-by-attribute"
        self._queries = tuple(queries_of(publication))
        self._seconds = float(publication.source.walk_deadline_seconds)
        self._render = renderer(publication)
        self._envelope = envelope(publication)
        self._structured = publication.message.envelope == "cloudevents-structured"
        self._is_line = publication.message.format == "cygnus-lines"
        self._suppresses = publication.source.suppress_unchanged
        self._record_time = event_time_ms if publication.topics.keep == "history" else record_time_ms
        self._most_bytes = int(publication.topics.config.get("max.message.bytes", _MAXIMUM_RECORD_BYTES))
        self._options = EntityRuleOptions.for_publication(publication, None)

    def health(self) -> SourceHealth:
        """As `SourceView.health`. The probe comes last: a broker whose database is away counts 0 and answers 200."""
        counts = tuple(self._broker.count(query) for query in self._queries)
        time = self._broker.probe()
        self._options = EntityRuleOptions.for_publication(self._publication, time)
        return SourceHealth(time, counts)

    def walk(self) -> Iterator[Met]:
        """As `SourceView.walk`; also what a walk may have passed over, where the broker can be swept."""
        for number, query in enumerate(self._queries):
            for read in (self._broker.scan, self._broker.scan_by_id):
                for page in read(query, deadline_seconds=self._seconds):
                    yield from self._of_page(number, query, page)

    def again(self, entities: Sequence[bytes]) -> Iterator[Met]:
        ids = sorted({str(orjson.loads(entity)[2]) for entity in entities if self.can_ask(entity)})
        for first in range(0, len(ids), _IDS_AT_ONCE):
            some = tuple(ids[first : first + _IDS_AT_ONCE])
            for number, query in enumerate(self._queries):
                asked = replace(query, ids=some, id_pattern=None)
                for page in self._broker.scan(asked, deadline_seconds=self._seconds):
                    yield from self._of_page(number, asked, page)

    def can_ask(self, entity: bytes) -> bool:
        """As `SourceView.can_ask`: ids are separated by commas, so one with a comma cannot be asked for."""
        entity_id = str(orjson.loads(entity)[2])
        return bool(entity_id) and "," not in entity_id

    def entity_of(self, name: bytes) -> bytes:
        members = orjson.loads(name)
        return name if len(members) == _IDENTITY else orjson.dumps(members[:_IDENTITY])

    def entity_of_key(self, key: bytes) -> bytes | None:
        """As `SourceView.entity_of_key`: only keys of the kind `identity` say it."""
        if self._publication.message.key != KEY_IDENTITY:
            return None
        try:
            members = orjson.loads(key)
        except orjson.JSONDecodeError:
            return None
        is_ours = isinstance(members, list) and len(members) >= _IDENTITY and all(isinstance(m, str) for m in members)
        return orjson.dumps(members[:_IDENTITY]) if is_ours and members[0] == self._publication.source.service else None

    def is_behind(self, entity: bytes | None, modified_us: int | None, watermark: str | None) -> bool:
        """As `SourceView.is_behind`: by the entity's own time of change."""
        del entity
        known = moment(watermark)
        return known is not None and modified_us is not None and modified_us > known.timestamp() * 1_000_000

    def difference(self, expected: ExpectedRecord, record: TopicRecord) -> Difference | None:
        """As `SourceView.difference`: the body by its canonical form, then headers, then the record's time."""
        value, sent_time = record.value or b"", None
        if self._structured:
            try:
                event = msgspec.json.decode(value, type=_Event)
            except msgspec.DecodeError:
                return "body"
            value, sent_time = bytes(event.data), parse_time(event.time)
        if self._content(value) != expected.content:
            return "body"
        if self._envelope is not None and not self._is_wrapped(self._envelope, expected, record, value, sent_time):
            return "headers"
        if self._envelope is None and foreign_headers(record):
            return "headers"
        return None if self._is_time(self._record_time(record), expected.modified_us) else "time"

    def _of_page(self, walk: int, query: EntityQuery, page: EntityPage) -> Iterator[Met]:
        received_ms = round(page.received_at.timestamp() * 1000)
        for body, seen in zip(page.entities, page.heads, strict=True):
            path = query.known_path or seen.path or "/"
            shown = ContextIdentity(self._publication.source.service, path, seen.id or "", seen.type or "")
            # Objects without an id are different ones, so that each counts.
            entity = identity_key(shown) if shown.id else content_hash([path, body.decode(errors="replace")])
            yield Met(walk, entity, tuple(self._rows(body, query.known_path, entity, received_ms)))

    def _rows(
        self, body: bytes, path: str | None, shown: bytes, received_ms: int
    ) -> Iterator[ExpectedRecord | QuarantinedEntity]:
        source = self._publication.source
        try:
            parsed = parse_entity(
                body,
                service=source.service,
                service_path_hint=path,
                form=source.api,
                # As in preparation: pages of NGSIv2 are requested with these times, which are not published.
                attribute_times=self._by_attribute or source.api == "ngsiv2",
            )
        except EntityError as error:
            yield QuarantinedEntity(shown, None, unreadable(error, self._options)[0].rule)
            return
        if self._publication.quality.coerce_numbers:
            parsed = coerce_numbers(parsed)
        modified = _microseconds(parsed.modified_at)
        refused = [each.rule for each in check_entity(parsed, self._options) if each.severity == "error"]
        entity = identity_key(parsed.identity)
        if refused:
            yield QuarantinedEntity(entity, modified, refused[0])
            return
        if not self._by_attribute:
            yield from self._records(parsed, None, content_hash(parsed.entity), modified, received_ms)
            return
        times = parsed.attribute_times or {}
        for key, value in parsed.attributes.items():
            own = _microseconds(times.get(key)) or modified
            yield from self._records(parsed, parsed.attribute_name(key), content_hash({key: value}), own, received_ms)

    def _records(
        self,
        parsed: ParsedEntity,
        attribute: AttributeName | None,
        event: bytes,
        modified: int | None,
        received_ms: int,
    ) -> Iterator[ExpectedRecord | QuarantinedEntity]:
        entity, name = identity_key(parsed.identity), identity_key(parsed.identity, attribute)
        try:
            made = self._render(parsed.identity, parsed.entity, attribute, received_ms, parsed.linked_data)
            value, size = made.value, len(made.value) + len(made.key or b"")
            if self._envelope is not None:
                wrapped = self._envelope.upsert(
                    parsed.identity,
                    attribute,
                    value,
                    content_hash=event,
                    occasion=RunReference(modified_at=_time(modified)),
                    key=name,
                )
                size = len(wrapped.value) + len(made.key or b"") + self._envelope.size(wrapped.headers)
        except RejectedError:
            yield QuarantinedEntity(entity, modified, "record")
            return
        if size > self._most_bytes:
            yield QuarantinedEntity(entity, modified, "size")
            return
        content = self._content(value)
        for topic in made.topics:
            yield ExpectedRecord(topic, made.key, name, entity, content, event, modified)

    def _content(self, value: bytes) -> bytes:
        """The hash of a value's canonical form; the time of reception in Cygnus' lines is no content of the source."""
        if self._is_line:
            value = _LINE_TIME.sub(rb"\g<1>0\2", value, count=1)
        return canonical_hash(value)

    def _is_wrapped(
        self, around: Envelope, expected: ExpectedRecord, record: TopicRecord, data: bytes, sent_time: datetime | None
    ) -> bool:
        """Whether an envelope is the one of this content, with a time that the source allows."""
        headers = dict(record.headers)
        if not self._structured:
            sent_time = parse_time((headers.get("ce_time") or b"").decode(errors="replace"))
        if expected.modified_us is not None and (
            sent_time is None or not self._is_allowed(_microseconds(sent_time) or 0, expected.modified_us)
        ):
            return False
        service, path, entity_id, entity_type, *part = cast("list[str]", orjson.loads(expected.name))
        made = around.upsert(
            ContextIdentity(service, path, entity_id, entity_type),
            AttributeName(part[0], *part[1:]) if part else None,
            data,
            content_hash=expected.event,
            occasion=RunReference(modified_at=sent_time),
            key=expected.name,
        )
        wanted = {name: value.encode() for name, value in around.constant}
        wanted |= {name: value for name, value in zip(around.columns, made.headers, strict=True) if value is not None}
        found = {name: value for name, value in record.headers if not name.startswith(OWN_HEADERS)}
        if expected.modified_us is None:
            # Nothing repeats the place in the landing that the id is made of then.
            wanted.pop("ce_id", None), found.pop("ce_id", None)
        elif self._structured and canonical_hash(made.value) != canonical_hash(record.value or b""):
            return False
        return wanted == found

    def _is_time(self, timestamp_ms: int | None, modified_us: int | None) -> bool:
        if timestamp_ms is None or modified_us is None:
            return True
        return self._is_allowed(timestamp_ms, modified_us // 1000)

    def _is_allowed(self, sent: int, modified: int) -> bool:
        """What was written again without a change was not sent again, so that its record is older."""
        return sent <= modified if self._suppresses else sent == modified


def _microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)


@contextmanager
def open_broker_view(publication: NgsiPublication, connection: BrokerConnection) -> Iterator[BrokerView]:
    """Gives the entities of a publication's broker, read as gently as its runs read them; closed at the end.

    Raises:
        RetriableError: the broker is away.
        ConfigurationError: the connection cannot be used, or the broker does not take its credentials.
    """
    source = publication.source
    budget = RetryBudget(pause_seconds=source.pause_milliseconds / 1000)
    with open_broker(connection, source.service, Dialect.of(source), budget=budget) as broker:
        yield BrokerView(publication, broker)
