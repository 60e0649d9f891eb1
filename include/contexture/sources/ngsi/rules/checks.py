"""The checks of one entity: every rule that it can break alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from contexture.events.rules import RuleFindings, Violation, abbreviate, violation_subject
from contexture.sources.ngsi.attributes import value_member
from contexture.sources.ngsi.entity import EntityError, ParsedEntity
from contexture.sources.ngsi.rules.catalogue import Bounds, EntityRuleOptions
from contexture.sources.ngsi.rules.values import (
    TYPE_MEANINGS,
    is_identifier,
    is_interval,
    linked_data_name_problem,
    linked_data_type_problem,
    moment_of,
    name_problem,
    number,
    syntax_problem,
    type_problem,
    uri_problem,
)

_IGNORED_PLACE = "ignoreType"


def check_attributes(
    attributes: Mapping[str, object],
    now: datetime | None,
    found: RuleFindings,
    *,
    allow_intervals: bool = False,
    linked_data: bool = False,
) -> None:
    """Finds what attributes alone can break. The loop is the hottest of all: a million entities pass in seconds."""
    places = 0
    name_problem_of = linked_data_name_problem if linked_data else name_problem
    for name, attribute in attributes.items():
        if name_problem_of(name) is not None:
            found.add("attr-syntax", f"the attribute name {violation_subject(name)} {name_problem_of(name)}")
        if type(attribute) is not dict or "value" not in attribute:
            _find_wrong_shape(name, attribute, found, linked_data=linked_data)
            continue
        kind, metadata = attribute.get("type"), attribute.get("metadata")
        if metadata:
            # The names of NGSI-LD's are made from those of attributes of attributes, of any depth.
            _check_metadata(name, metadata, found, named_here=not linked_data)
        meaning = TYPE_MEANINGS.get(kind) if type(kind) is str else None
        if meaning is None:
            _check_other_type(name, kind, found)
            continue
        value = attribute["value"]
        if value is None:
            found.add("null-value", f"{violation_subject(name)} is null, but its type {kind} needs a value")
            continue
        if not (allow_intervals and is_interval(str(kind), value)):
            meaning.check(name, value, now, found)
        if meaning.place and not _is_ignored(metadata):
            places += 1
    # An entity of NGSI-LD may have several: where it is, where it acts, and what it observes.
    if places > 1 and not linked_data:
        found.add("geojson", f"{places} attributes are places; all but one need the metadata {_IGNORED_PLACE}")


def _find_wrong_shape(name: str, attribute: object, found: RuleFindings, *, linked_data: bool) -> None:
    if linked_data and isinstance(attribute, dict):
        # A relationship written with a value has one, as its author sees it.
        kind = str(attribute.get("type"))
        found.add(
            "attr-shape",
            f"{violation_subject(name)} is a {violation_subject(kind)} without the member "
            f"{violation_subject(value_member(kind))}",
        )
    else:
        found.add("attr-shape", f"{violation_subject(name)} is not an object with a value")


def _check_other_type(name: str, kind: object, found: RuleFindings) -> None:
    if not isinstance(kind, str):
        # NGSIv2 lets a broker choose a type that isn't given.
        if kind is not None:
            found.add("attr-syntax", f"the type of {violation_subject(name)} is not a text")
        return
    problem = type_problem(kind)
    if problem is not None:
        found.add("attr-syntax", f"the type {violation_subject(kind)} of {violation_subject(name)} {problem}")


def _check_metadata(name: str, metadata: object, found: RuleFindings, *, named_here: bool) -> None:
    if not isinstance(metadata, dict):
        found.add("attr-shape", f"the metadata of {violation_subject(name)} is not an object")
        return
    for metadata_name, member in metadata.items():
        if not isinstance(member, dict) or "value" not in member:
            found.add(
                "attr-shape",
                f"the metadata {violation_subject(metadata_name)} of {violation_subject(name)} has no value",
            )
            continue
        if not named_here:
            continue
        kind = member.get("type")
        problem = type_problem(metadata_name) or (type_problem(kind) if isinstance(kind, str) else None)
        if problem is not None:
            found.add(
                "attr-syntax",
                f"name or type of the metadata {violation_subject(metadata_name)} of "
                f"{violation_subject(name)} {problem}",
            )


def _is_ignored(metadata: object) -> bool:
    flag = metadata.get(_IGNORED_PLACE) if isinstance(metadata, dict) else None
    return isinstance(flag, dict) and flag.get("value") is True


DEEPEST_NESTING = 50

_FORBIDDEN = re.compile("[<>\"'=;()]")
_UNRESTRICTED = "TextUnrestricted"

# The forbidden characters except the quote, which is behind a backslash in a text, as every escape is.
_SUSPICIOUS = b"<>'=;()\\"


def check_content(parsed: ParsedEntity, maximum_bytes: int, found: RuleFindings, *, linked_data: bool = False) -> None:
    """Finds what breaks `size`, `nesting` and `forbidden-char`; a search in the bytes suffices for most entities.

    NGSI-LD forbids no character in a value.
    """
    body = parsed.body
    size = len(body)
    if size > maximum_bytes:
        found.add("size", f"the body has {size} bytes; a record can have {maximum_bytes}")
    # Each level opens a bracket, so as many levels need as many brackets.
    if body.count(b"{") + body.count(b"[") > DEEPEST_NESTING:
        _check_nesting(parsed, found)
    if not linked_data and len(body.translate(None, _SUSPICIOUS)) < size:
        _check_texts(parsed, found)


def _check_nesting(parsed: ParsedEntity, found: RuleFindings) -> None:
    depth = _depth(parsed.entity)
    if depth > DEEPEST_NESTING:
        found.add("nesting", f"the body is nested {depth} levels deep; NGSIv2 accepts {DEEPEST_NESTING}")


def _depth(value: object) -> int:
    """Goes level by level, because bodies may be nested deeper than Python's own stack allows."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _check_texts(parsed: ParsedEntity, found: RuleFindings) -> None:
    for name, attribute in parsed.attributes.items():
        if isinstance(attribute, dict) and attribute.get("type") != _UNRESTRICTED:
            character = _first_forbidden(attribute.get("value"))
            if character is not None:
                found.add(
                    "forbidden-char", f"{violation_subject(name)} holds {character!a}, which NGSIv2 forbids in values"
                )


def _first_forbidden(value: object) -> str | None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            match = _FORBIDDEN.search(item)
            if match:
                return match[0]
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return None


def check_declared(parsed: ParsedEntity, options: EntityRuleOptions, found: RuleFindings) -> None:
    """Finds what breaks a declaration; without declarations it costs nothing."""
    if options.entity_types and not _is_declared(parsed, options):
        found.add("unknown-type", f"the type {violation_subject(parsed.identity.type)} is none of source.types")
    if options.required_attributes:
        _check_required(parsed, options, found)
    if options.attribute_types:
        _check_types(parsed, options, found)
    if options.ranges:
        _check_ranges(parsed, options, found)
    if options.allowed_values:
        _check_values(parsed, options, found)
    if parsed.identity.type in options.models:
        _check_model(parsed, options, found)


def _is_declared(parsed: ParsedEntity, options: EntityRuleOptions) -> bool:
    kind = parsed.identity.type
    # An NGSI-LD entity of several types is selected by any of them.
    return kind in options.entity_types or (
        parsed.linked_data is not None and not options.entity_types.isdisjoint(kind.split(","))
    )


def _check_required(parsed: ParsedEntity, options: EntityRuleOptions, found: RuleFindings) -> None:
    for name in options.required_attributes:
        if name not in parsed.attributes:
            found.add("required-attr", f"the attribute {violation_subject(name)} is absent")


def _check_types(parsed: ParsedEntity, options: EntityRuleOptions, found: RuleFindings) -> None:
    for name, attribute in parsed.attributes.items():
        declared = options.attribute_types.get(name)
        if declared is None:
            found.add("unknown-attr", f"{violation_subject(name)} is none of quality.attribute_types")
        elif isinstance(attribute, dict) and attribute.get("type") != declared:
            found.add(
                "attr-type",
                f"{violation_subject(name)} has the type {abbreviate(attribute.get('type'))}, "
                f"not {violation_subject(declared)}",
            )


def _check_ranges(parsed: ParsedEntity, options: EntityRuleOptions, found: RuleFindings) -> None:
    for name, bounds in options.ranges.items():
        attribute = parsed.attributes.get(name)
        magnitude = number(attribute.get("value")) if isinstance(attribute, dict) else None
        if magnitude is not None and not _within(magnitude, bounds):
            found.add("range", f"{violation_subject(name)} is out of its range: {magnitude!r}")


def _check_values(parsed: ParsedEntity, options: EntityRuleOptions, found: RuleFindings) -> None:
    for name, allowed in options.allowed_values.items():
        attribute = parsed.attributes.get(name)
        if isinstance(attribute, dict) and not _is_among(attribute.get("value"), allowed):
            found.add(
                "enum", f"{violation_subject(name)} is none of its allowed values: {abbreviate(attribute.get('value'))}"
            )


def _is_among(value: object, allowed: tuple[object, ...]) -> bool:
    magnitude = number(value)
    if magnitude is not None:
        return any(number(each) == magnitude for each in allowed)
    # Python takes true for 1.
    return any(type(each) is type(value) and each == value for each in allowed)


def _check_model(parsed: ParsedEntity, options: EntityRuleOptions, found: RuleFindings) -> None:
    # Imported here, because the validator takes long to load and most publications have no models.
    from contexture.sources.ngsi.json_schema import compiled, key_values

    kind, schemas = parsed.identity.type, compiled(options.models, options.model_documents)
    if found.includes("unknown-attr"):
        for name in parsed.attributes:
            if not schemas.knows(kind, name):
                found.add(
                    "unknown-attr", f"the model of {violation_subject(kind)} has no attribute {violation_subject(name)}"
                )
    if found.includes("model"):
        for problem in schemas.problems(kind, key_values(parsed.entity)):
            found.add("model", f"{violation_subject(problem.place or 'the entity')} {problem.message}")


def _within(magnitude: float, bounds: Bounds) -> bool:
    minimum, maximum = bounds
    return (minimum is None or magnitude >= minimum) and (maximum is None or magnitude <= maximum)


CLOCK_MARGIN = timedelta(seconds=60)
"""How far two healthy clocks may differ."""

_SKEW = timedelta(days=1)
_AGE_ATTRIBUTES = ("observedAt", "TimeInstant", "dateObserved")
_DEFAULTS = EntityRuleOptions()


def unreadable(error: EntityError, options: EntityRuleOptions = _DEFAULTS) -> list[Violation]:
    """Returns the rule that an unreadable body breaks: an error, because there is nothing to publish."""
    rule = str(error.context["rule"])
    # Where the publication switched the rule off, it is still no body that could be sent.
    return [Violation(rule if options.severities.get(rule) == "error" else "body", "error", error.message)]


def check_entity(
    parsed: ParsedEntity, options: EntityRuleOptions, received_at: datetime | None = None
) -> list[Violation]:
    """Returns the rules an entity breaks, in a fixed order.

    `received_at` is when it was received, UTC; the options' reference time when None.
    """
    found = RuleFindings(options.severities)
    now = received_at or options.reference_time
    _check_identity(parsed, options.linked_data, found)
    if parsed.shadowed:
        _check_shadowed(parsed, found)
    if now is not None:
        _check_clock(parsed, now, found)
        limit = options.stale_by_type.get(parsed.identity.type, options.stale_after_seconds)
        if limit is not None:
            _check_age(parsed, now, limit, found)
    check_attributes(
        parsed.attributes, now, found, allow_intervals=options.allow_intervals, linked_data=options.linked_data
    )
    check_declared(parsed, options, found)
    check_content(parsed, options.maximum_bytes, found, linked_data=options.linked_data)
    return found.violations


def _check_identity(parsed: ParsedEntity, linked_data: bool, found: RuleFindings) -> None:
    identity = parsed.identity
    type_problem_of = linked_data_type_problem if linked_data else type_problem
    if not is_identifier(identity.id) or linked_data:
        _find_wrong_id(parsed, linked_data, found)
    if not identity.type:
        found.add("type-missing", "the entity has no type that is a text")
    elif (problem := type_problem_of(identity.type)) is not None:
        found.add("type-syntax", f"the type {violation_subject(identity.type)} {problem}")


def _find_wrong_id(parsed: ParsedEntity, linked_data: bool, found: RuleFindings) -> None:
    entity_id = parsed.entity.get("id")
    if entity_id is None or entity_id == "":
        found.add("id-missing", "the entity has no id")
    elif not isinstance(entity_id, str):
        found.add("id-type", "the entity's id is not a text")
    elif (problem := uri_problem(entity_id) if linked_data else syntax_problem(entity_id)) is not None:
        found.add("id-syntax", f"the id {violation_subject(entity_id)} {problem}")


def _check_shadowed(parsed: ParsedEntity, found: RuleFindings) -> None:
    for name in parsed.shadowed:
        if name == "servicePath" and parsed.attribute_times is not None:
            found.add("shadowed-builtin", "a user's attribute called servicePath hides the service path of the entity")
        else:
            found.add("shadowed-builtin", f"{name} may be the user's or the broker's; request metadata dateModified")


def _check_clock(parsed: ParsedEntity, now: datetime, found: RuleFindings) -> None:
    modified_at, created_at = parsed.modified_at, parsed.created_at
    if modified_at is not None and modified_at > now:
        _find_time_ahead("dateModified", modified_at - now, found)
    if created_at is not None and created_at > now:
        _find_time_ahead("dateCreated", created_at - now, found)


def _find_time_ahead(name: str, ahead: timedelta, found: RuleFindings) -> None:
    # Clocks drift by seconds; what is days ahead was written by a user.
    if ahead > _SKEW:
        found.add("shadowed-builtin", f"{name} is {ahead.days} days ahead: a user's attribute hides the broker's")
    elif ahead > CLOCK_MARGIN:
        found.add("future-modified", f"{name} is {int(ahead.total_seconds())} s ahead of the broker's clock")


def _check_age(parsed: ParsedEntity, now: datetime, stale_after_seconds: int, found: RuleFindings) -> None:
    modified_at = parsed.modified_at
    if modified_at is not None and (now - modified_at).total_seconds() <= stale_after_seconds:
        return
    attributes = (parsed.attributes.get(name) for name in _AGE_ATTRIBUTES)
    times = (moment_of(attribute.get("value")) for attribute in attributes if isinstance(attribute, dict))
    newest = max((moment for moment in (modified_at, *times) if moment is not None), default=None)
    if newest is not None and (now - newest).total_seconds() > stale_after_seconds:
        found.add("stale", f"the newest time is {newest.isoformat()}, more than {stale_after_seconds} s ago")
