"""The rules entities are held to, as data: for checks, for `quality.rules`, and for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from contexture.errors import ConfigurationError

Severity = Literal["error", "warning"]
Setting = Literal["off", "warning", "error"]
Scope = Literal["entity", "record", "snapshot"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: its key in `quality.rules`.
        default: what a violation does unless the publication says otherwise: `error` quarantines the entity,
            `warning` publishes and counts it.
        description: what it asks for, in one line.
        scope: where it is checked: on one entity, on the finished record, or on the whole snapshot.
    """

    name: str
    default: Setting
    description: str
    scope: Scope = "entity"


RULES: tuple[Rule, ...] = (
    Rule("body", "error", "what the source sent is one JSON object"),
    Rule("id-missing", "error", "the entity has an id that isn't empty"),
    Rule("id-type", "error", "the entity's id is a string"),
    Rule("type-missing", "error", "the entity has a type, a string that isn't empty"),
    Rule("id-syntax", "warning", "the id has 1 to 256 characters that NGSIv2 accepts"),
    Rule("type-syntax", "warning", "the type has 1 to 256 characters that NGSIv2 accepts"),
    Rule("attr-syntax", "warning", "names and types of attributes and metadata have the syntax NGSIv2 accepts"),
    Rule("attr-shape", "error", "each attribute is an object with a value (normalized form)"),
    Rule("shadowed-builtin", "error", "no user attribute hides dateCreated, dateModified, dateExpires or servicePath"),
    Rule("number-string", "error", "the value of a Number, Integer or Float is a JSON number"),
    Rule("number-precision", "warning", "numbers stay within ±2^53, beyond which many consumers round them"),
    Rule("bool-string", "error", "the value of a Boolean is true or false"),
    Rule(
        "datetime",
        "warning",
        "a DateTime or ISO8601 can be read, names its zone, and is no interval unless those are allowed",
    ),
    Rule("datetime-range", "warning", "a DateTime lies between 1990 and one day ahead"),
    Rule("stale", "warning", "the newest time of the entity is not older than its type may be"),
    Rule("future-modified", "warning", "dateCreated and dateModified are not ahead of the broker's clock"),
    Rule("geojson", "warning", "a geo:json is one of the six geometries, in range, its rings closed, and the only one"),
    Rule("geo-legacy", "warning", "places are geo:json, not geo:point, geo:line, geo:box or geo:polygon"),
    Rule("null-value", "warning", "an attribute whose type needs a value has one"),
    Rule("unknown-type", "warning", "the type is one of source.types, where those are given"),
    Rule("unknown-attr", "off", "the attribute is one of quality.attribute_types, or one that its type's model names"),
    Rule("attr-type", "warning", "the attribute has the type that quality.attribute_types gives it"),
    Rule("required-attr", "warning", "the entity has all quality.required_attributes"),
    Rule("range", "warning", "numbers lie within quality.ranges"),
    Rule("enum", "warning", "values are among quality.allowed_values"),
    Rule("model", "warning", "the entity fits the JSON Schema that quality.models gives its type"),
    Rule(
        "forbidden-char",
        "warning",
        "text values hold none of the characters that NGSIv2 forbids",
    ),
    Rule("nesting", "error", "the body is nested 50 levels deep at most"),
    Rule("size", "error", "the body fits in a record"),
    Rule("topic-length", "error", "the topic's name is one that Kafka accepts", "record"),
    Rule(
        "duplicate",
        "error",
        "one identity has one content at one time of change; where that is no error, the last one counts",
        "snapshot",
    ),
    Rule("dup-across-paths", "warning", "an id and type stand in one service path only", "snapshot"),
    Rule(
        "type-drift",
        "warning",
        "an attribute has the NGSI type that it had in earlier runs; one that quality names has the same in all "
        "entities of a type",
        "snapshot",
    ),
    Rule(
        "relationship-target",
        "warning",
        "what a Relationship, or an attribute called refX, refers to was read or is held; judged in full runs",
        "snapshot",
    ),
    Rule("count-mismatch", "warning", "as many entities were read as the broker counted, within 0.1 %", "snapshot"),
    Rule("count-drop", "error", "no more vanish in one run than source.shrink_limit allows", "snapshot"),
    Rule("count-zero", "error", "the source isn't empty while the target holds something", "snapshot"),
)

REJECTING = ("dup-across-paths", "type-drift", "relationship-target", "count-mismatch", "count-zero")
"""Rules of the whole snapshot: nobody can say which entity is at fault, so an error rejects the run."""

_DEFAULTS: Mapping[str, Setting] = MappingProxyType({rule.name: rule.default for rule in RULES})


def unknown_rules(names: Iterable[str]) -> dict[str, str | None]:
    """The names that no rule has, each with the nearest name that one has (or None)."""
    unknown = (name for name in names if name not in _DEFAULTS)
    return {name: next(iter(get_close_matches(name, _DEFAULTS, 1)), None) for name in unknown}


def severities(settings: Mapping[str, Setting]) -> Mapping[str, Severity]:
    """What a violation of each rule is: the publication's settings over the defaults; rules that are off are absent.

    Raises:
        ConfigurationError: a setting names no rule.
    """
    unknown = unknown_rules(settings)
    if unknown:
        raise ConfigurationError(
            f"quality.rules names no such rule: {', '.join(unknown)}",
            next_step=f"use {', '.join(near or 'a name from the list of rules' for near in unknown.values())}",
        )
    merged = {**_DEFAULTS, **settings}
    return {name: setting for name, setting in merged.items() if setting != "off"}
