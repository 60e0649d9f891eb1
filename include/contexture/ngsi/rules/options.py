"""What the rules need to know of a publication, worked out once before a million entities are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from contexture.events.rules import Severity
from contexture.ngsi.rules.catalogue import severities

if TYPE_CHECKING:
    from contexture.publications import Publication

DEFAULT_MAXIMUM_BYTES = 1_000_000
"""librdkafka's `message.max.bytes`: what a producer sends unless it is told otherwise."""


class Bounds(NamedTuple):
    """The numbers an attribute may have; None is no bound."""

    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """What the rules of one run check against.

    Attributes:
        severities: rule to severity; a rule that is absent is off.
        required_attributes: attributes that every entity must have.
        attribute_types: attribute to the NGSI type it must have.
        ranges: attribute to the numbers it may have.
        entity_types: the types there are; empty when any is.
        stale_after_seconds: how old an entity's newest time may be; None for any age.
        stale_by_type: the same for entities of one type.
        allowed_values: attribute to the values it may have.
        models: entity type to the name of its JSON Schema among `model_documents`.
        model_documents: name to the text of a schema.
        allow_intervals: a moment may be an interval, `start/end`.
        linked_data: names follow NGSI-LD's syntax rather than NGSIv2's.
        maximum_bytes: how large a body may be.
        reference_time: the broker's clock; where it is None, and no time of reception is given, nothing is too new
            or too old.
    """

    severities: Mapping[str, Severity] = field(default_factory=lambda: severities({}))
    required_attributes: tuple[str, ...] = ()
    attribute_types: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, Bounds] = field(default_factory=dict)
    entity_types: frozenset[str] = frozenset()
    stale_after_seconds: int | None = None
    stale_by_type: Mapping[str, int] = field(default_factory=dict)
    allowed_values: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    model_documents: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow_intervals: bool = False
    linked_data: bool = False
    maximum_bytes: int = DEFAULT_MAXIMUM_BYTES
    reference_time: datetime | None = None

    @classmethod
    def for_publication(cls, publication: Publication, reference_time: datetime | None = None) -> RuleOptions:
        """The options that a publication's `quality`, `source` and `topics` say.

        Raises:
            ConfigurationError: `quality.rules` names a rule that there isn't.
        """
        quality = publication.quality
        return cls(
            severities=severities(quality.rules),
            required_attributes=tuple(quality.required_attributes),
            attribute_types=dict(quality.attribute_types),
            ranges={name: Bounds(bounds.minimum, bounds.maximum) for name, bounds in quality.ranges.items()},
            entity_types=frozenset(publication.source.types),
            stale_after_seconds=quality.fresh_within_seconds,
            stale_by_type=dict(quality.stale_after_seconds),
            allowed_values=dict(quality.allowed_values),
            models=dict(quality.models),
            model_documents=dict(quality.model_documents),
            allow_intervals=quality.allow_intervals,
            linked_data=_is_linked_data(publication),
            maximum_bytes=_maximum_bytes(publication.topics.config),
            reference_time=reference_time,
        )


def _is_linked_data(publication: Publication) -> bool:
    syntax = publication.quality.syntax
    return (getattr(publication.source, "api", "ngsiv2") if syntax == "auto" else syntax) == "ngsi-ld"


def _maximum_bytes(topic_configuration: Mapping[str, str]) -> int:
    configured = topic_configuration.get("max.message.bytes", "")
    return int(configured) if configured.isdecimal() else DEFAULT_MAXIMUM_BYTES
