"""Checks against what the publication declares: types, attributes, and the numbers they may have."""

from __future__ import annotations

from contexture.ngsi.entity import ParsedEntity
from contexture.ngsi.rules.numbers import number
from contexture.ngsi.rules.options import Bounds, RuleOptions
from contexture.ngsi.rules.violation import Findings, named, shown


def check_declared(parsed: ParsedEntity, options: RuleOptions, found: Findings) -> None:
    """Finds what breaks a declaration; a publication that declares nothing pays nothing."""
    if options.entity_types and parsed.identity.type not in options.entity_types:
        found.add("unknown-type", f"the type {named(parsed.identity.type)} is none of source.types")
    if options.required_attributes:
        _check_required(parsed, options, found)
    if options.attribute_types:
        _check_types(parsed, options, found)
    if options.ranges:
        _check_ranges(parsed, options, found)


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


def _within(magnitude: float, bounds: Bounds) -> bool:
    minimum, maximum = bounds
    return (minimum is None or magnitude >= minimum) and (maximum is None or magnitude <= maximum)
