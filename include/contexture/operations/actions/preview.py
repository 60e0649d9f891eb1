"""The records of sample entities: the same rules, names, keys and batches as a run's."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from contexture.errors import ConfigurationError, RejectedError
from contexture.events import AttributeName, ContextIdentity
from contexture.publications import NgsiPublication, fields
from contexture.records.batches import batch_numbers, batch_starts, sub_batch_numbers
from contexture.records.cloudevents.change_events import RunReference
from contexture.records.messages import ngsi_bodies
from contexture.records.messages.envelopes import envelope
from contexture.records.messages.rendering import Rendered, renderer
from contexture.records.topics import TopicNameError, TopicNamer
from contexture.records.topics.collisions import mark_collisions, metric_name, number_values
from contexture.sources.http.connection import BrokerConnection
from contexture.sources.http.transport import RetryBudget
from contexture.sources.ngsi.broker import Broker
from contexture.sources.ngsi.connect import Dialect, open_broker
from contexture.sources.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.sources.ngsi.entity_head import split_entity_list
from contexture.sources.ngsi.query import EntityQuery
from contexture.sources.ngsi.rules.catalogue import EntityRuleOptions
from contexture.sources.ngsi.rules.checks import check_entity, unreadable
from contexture.sources.ngsi.rules.values import coerce_numbers


@dataclass(frozen=True, slots=True)
class NameRequest:
    """An entity, or one attribute of it, whose topic is asked for."""

    identity: ContextIdentity
    attribute: str | None = None
    attribute_type: str = ""


@dataclass(frozen=True, slots=True)
class NamePreview:
    """The topics of what was asked for.

    Attributes:
        asked: the entity and the attribute.
        identity: what the name is made of, after grouping rules and name mappings.
        attribute: likewise the attribute's name.
        topics: the topics; none where there is an error.
        error: why it would go to quarantine, and what to do; empty otherwise.
        collides: whether another of those asked for would share the topic, or could not have its own beside it.
    """

    asked: NameRequest
    identity: ContextIdentity
    attribute: str | None
    topics: tuple[str, ...]
    error: str = ""
    collides: bool = False


def asked_entity(publication: NgsiPublication, text: str, service_path: str | None) -> ContextIdentity:
    """The entity that `id=type` or `id` means; its path is the publication's only one unless it is given."""
    entity_id, _, entity_type = text.rpartition("=") if "=" in text else (text, "", "")
    return ContextIdentity(publication.source.service, service_path or _path(publication), entity_id, entity_type)


def asked_of_sample(publication: NgsiPublication, samples: SampleEntities) -> tuple[list[NameRequest], list[str]]:
    """The entities of a sample, or each of their attributes; and what is wrong with those that can't be read."""
    asked, refused = list[NameRequest](), list[str]()
    source = publication.source
    for each in samples.entities:
        try:
            parsed = parse_entity(
                each.body, service=source.service, service_path_hint=each.service_path, form=source.api
            )
        except EntityError as error:
            refused.append(str(error))
            continue
        asked.extend(_names_of(parsed) if splits_by_attribute(publication) else [NameRequest(parsed.identity)])
    return asked, refused


def splits_by_attribute(publication: NgsiPublication) -> bool:
    """Whether topics are those of attributes."""
    return publication.topics.data_model == "dm-by-attribute" and publication.topics.naming != "fixed"


def _names_of(parsed: ParsedEntity) -> Iterator[NameRequest]:
    for name, member in parsed.attributes.items():
        kind = member.get("type") if isinstance(member, dict) else None
        attribute = parsed.attribute_name(name).name
        yield NameRequest(parsed.identity, attribute, kind if isinstance(kind, str) else "")


def show_names(publication: NgsiPublication, asked: Iterable[NameRequest]) -> list[NamePreview]:
    """The topics of each, in order.

    Raises:
        ConfigurationError: the publication's topics can't be named.
    """
    namer = TopicNamer(publication.topics)
    return _with_collisions(namer, publication, [_shown(namer, each) for each in asked])


def _with_collisions(namer: TopicNamer, publication: NgsiPublication, shown: list[NamePreview]) -> list[NamePreview]:
    if publication.topics.naming == "fixed":
        return shown
    named = [each for each in shown if not each.error]
    topics = number_values([metric_name(each.topics[0]) for each in named])
    asked = [(each.asked.identity, each.asked.attribute, each.asked.attribute_type) for each in named]
    found = iter(mark_collisions(topics, number_values([namer.parts(*each) for each in asked])).tolist())
    return [each if each.error else replace(each, collides=next(found)) for each in shown]


def _shown(namer: TopicNamer, asked: NameRequest) -> NamePreview:
    identity, attribute = namer.names(asked.identity, asked.attribute, asked.attribute_type)
    try:
        topics = namer(asked.identity, asked.attribute, asked.attribute_type)
    except RejectedError as error:
        return NamePreview(asked, identity, attribute, (), str(error))
    return NamePreview(asked, identity, attribute, topics)


def _path(publication: NgsiPublication) -> str:
    if publication.source.api == "ngsi-ld":
        # It has no service paths.
        return "/"
    first = publication.source.service_path[0]
    return first if not fields.is_wildcard(first) else first.removesuffix("#").rstrip("/") or "/"


_PATIENCE = RetryBudget(attempts=2, first_wait_seconds=0.2, longest_wait_seconds=0.5)
_DEADLINE_SECONDS = 30.0
# A file has no time of arrival; one fixed moment keeps its preview the same each time.
_NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SampleEntity:
    """One entity as its source has it, its service path (None: the entity has to say), and when it arrived, UTC."""

    body: bytes
    service_path: str | None
    received_at: datetime


@dataclass(frozen=True, slots=True)
class SampleEntities:
    """Sample entities, where they come from, and the broker's clock where there is one."""

    origin: str
    entities: tuple[SampleEntity, ...]
    reference_time: datetime | None


def from_file(path: Path, publication: NgsiPublication) -> SampleEntities:
    """The entities of a JSON file: an array of them, one alone, or one on each line.

    Raises:
        ConfigurationError: the file can't be read, or holds something else.
    """
    try:
        bodies = _bodies(path.read_bytes().removeprefix(BOM_UTF8).strip())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}", next_step="check the path") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path} holds no entities: {error}",
            next_step=f"write a JSON array of entities in the normalized form of {publication.source.api}",
        ) from None
    paths = publication.source.service_path
    service_path = None if len(paths) > 1 or fields.is_wildcard(paths[0]) else paths[0]
    return SampleEntities(str(path), tuple(SampleEntity(body, service_path, _NO_TIME) for body in bodies), None)


def _bodies(content: bytes) -> list[bytes]:
    bodies = split_entity_list(content) if content.startswith(b"[") else _alone_or_on_lines(content)
    if not bodies:
        raise ValueError("it is empty")
    return bodies


def _alone_or_on_lines(content: bytes) -> list[bytes]:
    try:
        return [bytes(msgspec.json.decode(content, type=msgspec.Raw))]
    except msgspec.DecodeError:
        decoder = msgspec.json.Decoder(msgspec.Raw)
        return [bytes(raw) for raw in decoder.decode_lines(content)]


def from_broker(connection: BrokerConnection, publication: NgsiPublication, limit: int) -> SampleEntities:
    """The first entities that the publication selects, oldest first.

    Raises:
        ContextureError: the broker can't be reached, or refuses.
    """
    entities: list[SampleEntity] = []
    source = publication.source
    with open_broker(connection, source.service, Dialect.of(source), budget=_PATIENCE) as broker:
        reference_time = broker.probe()
        # Scopes of NGSI-LD are selected at once, for an entity may have several.
        paths = (",".join(source.service_path),) if source.api == "ngsi-ld" else source.service_path
        for path in paths:
            entities.extend(_of_path(broker, publication, path, limit - len(entities)))
            if len(entities) >= limit:
                break
    return SampleEntities(connection.address, tuple(entities), reference_time)


def _of_path(broker: Broker, publication: NgsiPublication, path: str, limit: int) -> Iterator[SampleEntity]:
    query = EntityQuery.of_source(publication.source, path, limit)
    hint = None if fields.is_wildcard(path) else path
    page = next(broker.scan(query, deadline_seconds=_DEADLINE_SECONDS), None)
    if page is not None:
        yield from (SampleEntity(body, hint, page.received_at) for body in page.entities[:limit])


def parse_sample(publication: NgsiPublication, samples: SampleEntities) -> list[ParsedEntity]:
    """Returns the entities of a sample that can be read."""
    source, found = publication.source, list[ParsedEntity]()
    for each in samples.entities:
        with suppress(EntityError):
            found.append(
                parse_entity(each.body, service=source.service, service_path_hint=each.service_path, form=source.api)
            )
    return found


_Render = Callable[[ParsedEntity, AttributeName | None, int], Rendered]


@dataclass(frozen=True, slots=True)
class RefusedSample:
    """An entity, or one attribute of it, that would go to quarantine."""

    id: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class PreviewRecord:
    """One record as Kafka would get it; batches and sub-batches are counted from 1."""

    batch: int
    sub_batch: int
    topic: str
    key: str | None
    events: int
    entities: tuple[str, ...]
    value_bytes: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What the sample would become.

    Attributes:
        origin: where the sample comes from.
        entities: how many entities it has.
        batches: how many batches they make.
        records: in sending order.
        refused: what would go to quarantine.
        warnings: how many entities break a rule that doesn't hold them back, by rule.
    """

    origin: str
    entities: int
    batches: int
    records: tuple[PreviewRecord, ...]
    refused: tuple[RefusedSample, ...]
    warnings: dict[str, int]

    @property
    def topics(self) -> dict[str, int]:
        """Records by topic, in order of first use."""
        return dict(Counter(record.topic for record in self.records))


@dataclass(frozen=True, slots=True)
class _Event:
    id: str
    received_at_us: int
    rendered: Rendered


@dataclass(slots=True)
class _Outcome:
    events: list[_Event] = field(default_factory=list)
    refused: list[RefusedSample] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)


def preview(publication: NgsiPublication, samples: SampleEntities) -> Preview:
    """The records that the sample would become, as far as one run of it alone shows.

    Raises:
        ConfigurationError: the publication can't be rendered.
    """
    options = EntityRuleOptions.for_publication(publication, reference_time=samples.reference_time)
    outcome = _Outcome()
    render = _renderer(publication)
    for sample in samples.entities:
        parsed = _accepted(publication, sample, options, outcome)
        if parsed is not None:
            _render(publication, render, parsed, sample, outcome)
    batches, records = _records(publication, outcome.events)
    return Preview(
        samples.origin, len(samples.entities), batches, records, tuple(outcome.refused), dict(outcome.warnings)
    )


def _accepted(
    publication: NgsiPublication, sample: SampleEntity, options: EntityRuleOptions, outcome: _Outcome
) -> ParsedEntity | None:
    source = publication.source
    try:
        parsed = parse_entity(
            sample.body, service=source.service, service_path_hint=sample.service_path, form=source.api
        )
    except EntityError as error:
        outcome.refused.extend(RefusedSample("", each.rule, each.message) for each in unreadable(error, options))
        return None
    if publication.quality.coerce_numbers:
        parsed = coerce_numbers(parsed)
    violations = check_entity(parsed, options)
    errors = [
        RefusedSample(parsed.identity.id, each.rule, each.message) for each in violations if each.severity == "error"
    ]
    outcome.refused.extend(errors)
    if not errors:
        outcome.warnings.update({each.rule for each in violations})
    return None if errors else parsed


def _renderer(publication: NgsiPublication) -> _Render:
    """What renders an event, in its envelope where it gets one."""
    render, around = renderer(publication), envelope(publication)

    def rendered(parsed: ParsedEntity, part: AttributeName | None, received_at_ms: int) -> Rendered:
        made = render(parsed.identity, parsed.entity, part, received_at_ms, parsed.linked_data)
        if around is None:
            return made
        # The id is a digest: its length is all that shows here.
        occasion = RunReference(modified_at=parsed.modified_at)
        wrapped = around.upsert(parsed.identity, part, made.value, content_hash=b"", occasion=occasion)
        return made._replace(value=wrapped.value)

    return rendered


def _render(
    publication: NgsiPublication, render: _Render, parsed: ParsedEntity, sample: SampleEntity, outcome: _Outcome
) -> None:
    received_at_us = round(sample.received_at.timestamp() * 1_000_000)
    by_attribute = publication.topics.data_model == "dm-by-attribute"
    parts: Iterable[AttributeName | None] = map(parsed.attribute_name, parsed.attributes) if by_attribute else (None,)
    for part in parts:
        try:
            rendered = render(parsed, part, received_at_us // 1000)
            outcome.events.append(_Event(parsed.identity.id, received_at_us, rendered))
        except TopicNameError as error:
            outcome.refused.append(RefusedSample(parsed.identity.id, "topic-length", error.message))
        except RejectedError as error:
            outcome.refused.append(RefusedSample(parsed.identity.id, "message", error.message))


def _records(publication: NgsiPublication, events: list[_Event]) -> tuple[int, tuple[PreviewRecord, ...]]:
    batches = publication.batches
    received_at = np.array([event.received_at_us for event in events], dtype=np.int64)
    starts = batch_starts(received_at, batches.batch_size, batches.batch_timeout)
    destined = [(place, topic) for place, event in enumerate(events) for topic in event.rendered.topics]
    if not destined:
        return 0, ()
    numbers = {topic: number for number, topic in enumerate(dict.fromkeys(topic for _, topic in destined))}
    batch = batch_numbers(starts, len(events))[[place for place, _ in destined]]
    sub_batch = sub_batch_numbers(batch, np.array([numbers[topic] for _, topic in destined], dtype=np.int64))
    joins_lines = publication.message.format == "cygnus-lines"
    groups: dict[tuple[int, int, str, int], list[_Event]] = {}
    for row, (place, topic) in enumerate(destined):
        where = (int(batch[row]), int(sub_batch[row]), topic, 0 if joins_lines else row)
        groups.setdefault(where, []).append(events[place])
    return len(starts), tuple(_record(*where[:3], lines) for where, lines in _in_sending_order(groups, joins_lines))


def _in_sending_order(
    groups: dict[tuple[int, int, str, int], list[_Event]], joins_lines: bool
) -> list[tuple[tuple[int, int, str, int], list[_Event]]]:
    # Lines wait for their batch to close; single events go out as they came.
    return sorted(groups.items(), key=lambda item: item[0]) if joins_lines else list(groups.items())


def _record(batch: int, sub_batch: int, topic: str, events: list[_Event]) -> PreviewRecord:
    key = events[-1].rendered.key
    value = ngsi_bodies.join(event.rendered.value for event in events)
    return PreviewRecord(
        batch=batch + 1,
        sub_batch=sub_batch + 1,
        topic=topic,
        key=None if key is None else key.decode(errors="replace"),
        events=len(events),
        entities=tuple(dict.fromkeys(event.id for event in events)),
        value_bytes=len(value),
    )
