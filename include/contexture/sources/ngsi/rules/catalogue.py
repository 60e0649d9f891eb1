"""The rules for entities as data: for checks, for `quality.rules`, and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from contexture.events.rules import Catalogue, Rule, Severity, parse_rules

if TYPE_CHECKING:
    from contexture.publications import NgsiPublication

_ENTITY_RULES = """
    body error what the source sent is one JSON object
    id-missing error the entity has an id that is not empty
    id-type error the entity's id is a string
    type-missing error the entity has a type, a string that is not empty
    id-syntax warning the id has 1 to 256 characters that NGSIv2 accepts
    type-syntax warning the type has 1 to 256 characters that NGSIv2 accepts
    attr-syntax warning names and types of attributes and metadata have the syntax NGSIv2 accepts
    attr-shape error each attribute is an object with a value (normalized form)
    shadowed-builtin error dateCreated, dateModified, dateExpires and servicePath are surely the broker's or a user's
    number-string error the value of a Number, Integer or Float is a JSON number
    number-precision warning numbers stay within ±2^53, beyond which many consumers round them
    bool-string error the value of a Boolean is true or false
    datetime warning a DateTime or ISO8601 can be read, names its zone, and is no interval unless those are allowed
    datetime-range warning a DateTime is between 1990 and one day ahead
    stale warning the newest time of the entity is not older than its type may be
    future-modified warning dateCreated and dateModified are not ahead of the broker's clock
    geojson warning a geo:json is one of the six geometries, in range, its rings closed, and in NGSIv2 the only one
    null-island warning a Point is not at longitude 0, latitude 0, which devices without a position report
    geo-legacy warning places are geo:json, not geo:point, geo:line, geo:box or geo:polygon
    null-value warning an attribute whose type needs a value has one
    unknown-type warning the type is one of source.types, where those are given
    unknown-attr off the attribute is one of quality.attribute_types, or one that its type's model names
    attr-type warning the attribute has the type that quality.attribute_types gives it
    required-attr warning the entity has all quality.required_attributes
    range warning numbers are within quality.ranges
    enum warning values are among quality.allowed_values
    model warning the entity matches the JSON Schema that quality.models gives its type
    forbidden-char warning text values hold none of the characters that NGSIv2 forbids
    nesting error the body is nested 50 levels deep at most
    size error the body fits in a record
"""
_RECORD_RULES = """
    topic-length error the topic's name is one that Kafka accepts
"""
_SNAPSHOT_RULES = """
    duplicate error one identity has one content at one time of change; where that is no error, the last one counts
    dup-across-paths warning an id and type are in one service path only
    type-drift warning an attribute keeps its NGSI type of earlier runs; one in quality has one type per entity type
    relationship-target warning the target of a Relationship or refX attribute was read or is published; full runs only
    count-mismatch warning as many entities were read as the broker counted, within 0.1 %
    count-drop error no more disappear in one run than source.shrink_limit allows
    count-zero error the source is not empty while the target has content
"""

RULES: tuple[Rule, ...] = (
    *parse_rules("entity", _ENTITY_RULES),
    *parse_rules("record", _RECORD_RULES),
    *parse_rules("snapshot", _SNAPSHOT_RULES),
)

REJECTING = ("dup-across-paths", "type-drift", "relationship-target", "count-mismatch", "count-zero")
"""Rules of the whole snapshot: they do not show which entity is at fault, so an error rejects the run."""

_CATALOGUE = Catalogue(RULES)

severities = _CATALOGUE.severities

DEFAULT_MAXIMUM_BYTES = 1_000_000
"""librdkafka's `message.max.bytes`: what a producer sends unless it is configured otherwise."""


class Bounds(NamedTuple):
    """The numbers an attribute may have; None is no bound."""

    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class EntityRuleOptions:
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
    def for_publication(cls, publication: NgsiPublication, reference_time: datetime | None = None) -> EntityRuleOptions:
        """Returns the options of a publication's `quality`, `source` and `topics`.

        Raises:
            ConfigurationError: `quality.rules` names a rule that does not exist.
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


def _is_linked_data(publication: NgsiPublication) -> bool:
    syntax = publication.quality.syntax
    return (publication.source.api if syntax == "auto" else syntax) == "ngsi-ld"


def _maximum_bytes(topic_configuration: Mapping[str, str]) -> int:
    configured = topic_configuration.get("max.message.bytes", "")
    return int(configured) if configured.isdecimal() else DEFAULT_MAXIMUM_BYTES
