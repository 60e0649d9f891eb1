"""What records sample entities would become: the same rules, names, keys and batches as a run's, on a handful."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from contexture.cli.samples import SampleEntity, Samples
from contexture.errors import RejectedError
from contexture.events import AttributeName
from contexture.publications import Publication
from contexture.records.batches import batch_numbers, batch_starts, sub_batch_numbers
from contexture.records.cloudevents.change_events import Occasion
from contexture.records.messages import ngsi_bodies
from contexture.records.messages.envelopes import envelope
from contexture.records.messages.rendering import Rendered, renderer
from contexture.records.topics import TopicNameError
from contexture.sources.ngsi import EntityError, ParsedEntity, parse_entity
from contexture.sources.ngsi.rules import RuleOptions, check_entity, unreadable
from contexture.sources.ngsi.rules.values import with_numbers

_Render = Callable[[ParsedEntity, AttributeName | None, int], Rendered]


@dataclass(frozen=True, slots=True)
class Refused:
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
    refused: tuple[Refused, ...]
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
    refused: list[Refused] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)


def preview(publication: Publication, samples: Samples) -> Preview:
    """The records that the sample would become, as far as one run of it alone tells.

    Raises:
        ConfigurationError: the publication can't be rendered.
    """
    options = RuleOptions.for_publication(publication, reference_time=samples.reference_time)
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
    publication: Publication, sample: SampleEntity, options: RuleOptions, outcome: _Outcome
) -> ParsedEntity | None:
    source = publication.source
    try:
        parsed = parse_entity(
            sample.body, service=source.service, service_path_hint=sample.service_path, form=source.api
        )
    except EntityError as error:
        outcome.refused.extend(Refused("", each.rule, each.message) for each in unreadable(error, options))
        return None
    if publication.quality.coerce_numbers:
        parsed = with_numbers(parsed)
    violations = check_entity(parsed, options)
    errors = [Refused(parsed.identity.id, each.rule, each.message) for each in violations if each.severity == "error"]
    outcome.refused.extend(errors)
    if not errors:
        outcome.warnings.update({each.rule for each in violations})
    return None if errors else parsed


def _renderer(publication: Publication) -> _Render:
    """What renders an event, in its envelope where it gets one."""
    render, around = renderer(publication), envelope(publication)

    def rendered(parsed: ParsedEntity, part: AttributeName | None, received_at_ms: int) -> Rendered:
        made = render(parsed.identity, parsed.entity, part, received_at_ms, parsed.linked_data)
        if around is None:
            return made
        # The id is a digest: its length is all that shows here.
        occasion = Occasion(modified_at=parsed.modified_at)
        told = around.upsert(parsed.identity, part, made.value, content_hash=b"", occasion=occasion)
        return made._replace(value=told.value)

    return rendered


def _render(
    publication: Publication, render: _Render, parsed: ParsedEntity, sample: SampleEntity, outcome: _Outcome
) -> None:
    received_at_us = round(sample.received_at.timestamp() * 1_000_000)
    by_attribute = publication.topics.data_model == "dm-by-attribute"
    parts: Iterable[AttributeName | None] = map(parsed.attribute_name, parsed.attributes) if by_attribute else (None,)
    for part in parts:
        try:
            rendered = render(parsed, part, received_at_us // 1000)
            outcome.events.append(_Event(parsed.identity.id, received_at_us, rendered))
        except TopicNameError as error:
            outcome.refused.append(Refused(parsed.identity.id, "topic-length", error.message))
        except RejectedError as error:
            outcome.refused.append(Refused(parsed.identity.id, "message", error.message))


def _records(publication: Publication, events: list[_Event]) -> tuple[int, tuple[PreviewRecord, ...]]:
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
