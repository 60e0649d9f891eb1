"""What the rules need to know of a publication, worked out once before a million entities are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from contexture.ngsi.rules.catalogue import Severity, severities

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
            maximum_bytes=_maximum_bytes(publication.topics.config),
            reference_time=reference_time,
        )


def _maximum_bytes(topic_configuration: Mapping[str, str]) -> int:
    configured = topic_configuration.get("max.message.bytes", "")
    return int(configured) if configured.isdecimal() else DEFAULT_MAXIMUM_BYTES
