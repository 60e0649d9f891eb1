"""The checks of one entity: every rule that it alone can break."""

from __future__ import annotations

from datetime import datetime, timedelta

from contexture.events import ContextIdentity, Event
from contexture.events.rules import Findings, Violation, named
from contexture.ngsi.entity import EntityError, ParsedEntity, parse_entity
from contexture.ngsi.rules.attributes import check_attributes
from contexture.ngsi.rules.content import check_content
from contexture.ngsi.rules.declared import check_declared
from contexture.ngsi.rules.identifiers import (
    is_identifier,
    linked_data_type_problem,
    syntax_problem,
    type_problem,
    uri_problem,
)
from contexture.ngsi.rules.options import RuleOptions
from contexture.ngsi.rules.values import moment_of

CLOCK_MARGIN = timedelta(seconds=60)
"""How far two healthy clocks may differ."""

_SKEW = timedelta(days=1)
_AGE_ATTRIBUTES = ("observedAt", "TimeInstant", "dateObserved")
_DEFAULTS = RuleOptions()


def check(event: Event, options: RuleOptions = _DEFAULTS) -> list[Violation]:
    """The rules an event breaks; none for a deletion or a structure.

    Args:
        event: its body in NGSIv2's normalized form; its time of reception stands for the broker's clock.
        options: the publication's settings.
    """
    identity = event.identity
    if event.body is None or not isinstance(identity, ContextIdentity):
        return []
    try:
        parsed = parse_entity(event.body, service=identity.service, service_path_hint=identity.service_path)
    except EntityError as error:
        return unreadable(error, options)
    return check_entity(parsed, options, received_at=event.received_at)


def unreadable(error: EntityError, options: RuleOptions = _DEFAULTS) -> list[Violation]:
    """The rule that a body breaks which can't be taken apart: an error, for there is nothing to publish."""
    rule = str(error.context["rule"])
    # Where the publication lets the rule pass, it is still no body that could be sent.
    return [Violation(rule if options.severities.get(rule) == "error" else "body", "error", error.message)]


def check_entity(parsed: ParsedEntity, options: RuleOptions, received_at: datetime | None = None) -> list[Violation]:
    """The rules an entity breaks, in a fixed order.

    Args:
        parsed: the entity.
        options: the publication's settings.
        received_at: when it was received, UTC; the options' reference time when None.
    """
    found = Findings(options.severities)
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


def _check_identity(parsed: ParsedEntity, linked_data: bool, found: Findings) -> None:
    identity = parsed.identity
    type_problem_of = linked_data_type_problem if linked_data else type_problem
    if not is_identifier(identity.id) or linked_data:
        _tell_about_id(parsed, linked_data, found)
    if not identity.type:
        found.add("type-missing", "the entity has no type that is a text")
    elif (problem := type_problem_of(identity.type)) is not None:
        found.add("type-syntax", f"the type {named(identity.type)} {problem}")


def _tell_about_id(parsed: ParsedEntity, linked_data: bool, found: Findings) -> None:
    entity_id = parsed.entity.get("id")
    if entity_id is None or entity_id == "":
        found.add("id-missing", "the entity has no id")
    elif not isinstance(entity_id, str):
        found.add("id-type", "the entity's id isn't a text")
    elif (problem := uri_problem(entity_id) if linked_data else syntax_problem(entity_id)) is not None:
        found.add("id-syntax", f"the id {named(entity_id)} {problem}")


def _check_shadowed(parsed: ParsedEntity, found: Findings) -> None:
    for name in parsed.shadowed:
        if name == "servicePath" and parsed.attribute_times is not None:
            found.add("shadowed-builtin", "a user's attribute called servicePath hides the service path of the entity")
        else:
            found.add("shadowed-builtin", f"{name} may be the user's or the broker's; request metadata dateModified")


def _check_clock(parsed: ParsedEntity, now: datetime, found: Findings) -> None:
    modified_at, created_at = parsed.modified_at, parsed.created_at
    if modified_at is not None and modified_at > now:
        _tell_about_clock("dateModified", modified_at - now, found)
    if created_at is not None and created_at > now:
        _tell_about_clock("dateCreated", created_at - now, found)


def _tell_about_clock(name: str, ahead: timedelta, found: Findings) -> None:
    # Clocks drift by seconds; what is days ahead was written by a user.
    if ahead > _SKEW:
        found.add("shadowed-builtin", f"{name} is {ahead.days} days ahead: a user's attribute hides the broker's")
    elif ahead > CLOCK_MARGIN:
        found.add("future-modified", f"{name} is {int(ahead.total_seconds())} s ahead of the broker's clock")


def _check_age(parsed: ParsedEntity, now: datetime, stale_after_seconds: int, found: Findings) -> None:
    modified_at = parsed.modified_at
    if modified_at is not None and (now - modified_at).total_seconds() <= stale_after_seconds:
        return
    attributes = (parsed.attributes.get(name) for name in _AGE_ATTRIBUTES)
    told = (moment_of(attribute.get("value")) for attribute in attributes if isinstance(attribute, dict))
    newest = max((moment for moment in (modified_at, *told) if moment is not None), default=None)
    if newest is not None and (now - newest).total_seconds() > stale_after_seconds:
        found.add("stale", f"the newest time is {newest.isoformat()}, more than {stale_after_seconds} s ago")
