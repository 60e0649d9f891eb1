"""Checks against what the publication declares: types, attributes, and the numbers they may have."""

from __future__ import annotations

from contexture.events.rules import Findings, named, shown
from contexture.ngsi.entity import ParsedEntity
from contexture.ngsi.rules.numbers import number
from contexture.ngsi.rules.options import Bounds, RuleOptions


def check_declared(parsed: ParsedEntity, options: RuleOptions, found: Findings) -> None:
    """Finds what breaks a declaration; a publication that declares nothing pays nothing."""
    if options.entity_types and not _is_declared(parsed, options):
        found.add("unknown-type", f"the type {named(parsed.identity.type)} is none of source.types")
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


def _is_declared(parsed: ParsedEntity, options: RuleOptions) -> bool:
    kind = parsed.identity.type
    # An NGSI-LD entity of several types is selected by any of them.
    return kind in options.entity_types or (
        parsed.linked_data is not None and not options.entity_types.isdisjoint(kind.split(","))
    )


def _check_required(parsed: ParsedEntity, options: RuleOptions, found: Findings) -> None:
    for name in options.required_attributes:
        if name not in parsed.attributes:
            found.add("required-attr", f"the attribute {named(name)} is absent")


def _check_types(parsed: ParsedEntity, options: RuleOptions, found: Findings) -> None:
    for name, attribute in parsed.attributes.items():
        declared = options.attribute_types.get(name)
        if declared is None:
            found.add("unknown-attr", f"{named(name)} is none of quality.attribute_types")
        elif isinstance(attribute, dict) and attribute.get("type") != declared:
            found.add("attr-type", f"{named(name)} has the type {shown(attribute.get('type'))}, not {named(declared)}")


def _check_ranges(parsed: ParsedEntity, options: RuleOptions, found: Findings) -> None:
    for name, bounds in options.ranges.items():
        attribute = parsed.attributes.get(name)
        magnitude = number(attribute.get("value")) if isinstance(attribute, dict) else None
        if magnitude is not None and not _within(magnitude, bounds):
            found.add("range", f"{named(name)} is out of its range: {magnitude!r}")


def _check_values(parsed: ParsedEntity, options: RuleOptions, found: Findings) -> None:
    for name, allowed in options.allowed_values.items():
        attribute = parsed.attributes.get(name)
        if isinstance(attribute, dict) and not _is_among(attribute.get("value"), allowed):
            found.add("enum", f"{named(name)} is none of its allowed values: {shown(attribute.get('value'))}")


def _is_among(value: object, allowed: tuple[object, ...]) -> bool:
    magnitude = number(value)
    if magnitude is not None:
        return any(number(each) == magnitude for each in allowed)
    # Python takes true for 1.
    return any(type(each) is type(value) and each == value for each in allowed)


def _check_model(parsed: ParsedEntity, options: RuleOptions, found: Findings) -> None:
    # Imported here, for the validator takes long to load and most publications have no models.
    from contexture.ngsi.models import compiled, key_values

    kind, schemas = parsed.identity.type, compiled(options.models, options.model_documents)
    if found.wants("unknown-attr"):
        for name in parsed.attributes:
            if not schemas.knows(kind, name):
                found.add("unknown-attr", f"the model of {named(kind)} has no attribute {named(name)}")
    if found.wants("model"):
        for problem in schemas.problems(kind, key_values(parsed.entity)):
            found.add("model", f"{named(problem.place or 'the entity')} {problem.message}")


def _within(magnitude: float, bounds: Bounds) -> bool:
    minimum, maximum = bounds
    return (minimum is None or magnitude >= minimum) and (maximum is None or magnitude <= maximum)
