"""The rules entities are held to, as data: for checks, for `quality.rules`, and for the documentation."""

from __future__ import annotations

from contexture.events.rules import Catalogue, Rule

RULES: tuple[Rule, ...] = (
    Rule("body", "error", "what the source sent is one JSON object"),
    Rule("id-missing", "error", "the entity has an id that isn't empty"),
    Rule("id-type", "error", "the entity's id is a string"),
    Rule("type-missing", "error", "the entity has a type, a string that isn't empty"),
    Rule("id-syntax", "warning", "the id has 1 to 256 characters that NGSIv2 accepts"),
    Rule("type-syntax", "warning", "the type has 1 to 256 characters that NGSIv2 accepts"),
    Rule("attr-syntax", "warning", "names and types of attributes and metadata have the syntax NGSIv2 accepts"),
    Rule("attr-shape", "error", "each attribute is an object with a value (normalized form)"),
    Rule(
        "shadowed-builtin",
        "error",
        "dateCreated, dateModified, dateExpires and servicePath are known to be the broker's or a user's",
    ),
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
    Rule(
        "geojson",
        "warning",
        "a geo:json is one of the six geometries, in range, its rings closed, and in NGSIv2 the only one",
    ),
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

_CATALOGUE = Catalogue(RULES)

unknown_rules = _CATALOGUE.unknown
severities = _CATALOGUE.severities
