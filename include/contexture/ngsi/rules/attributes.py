"""Checks of every attribute: shape, names, and the value its type asks for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from contexture.events.rules import Findings, named
from contexture.ngsi.linked_data.attributes import value_member
from contexture.ngsi.rules.identifiers import linked_data_name_problem, name_problem, type_problem
from contexture.ngsi.rules.values import TYPE_MEANINGS, is_interval

_IGNORED_PLACE = "ignoreType"


def check_attributes(
    attributes: Mapping[str, object],
    now: datetime | None,
    found: Findings,
    *,
    allow_intervals: bool = False,
    linked_data: bool = False,
) -> None:
    """Finds what attributes alone can break. The loop is the hottest of all: a million entities pass in seconds."""
    places = 0
    name_problem_of = linked_data_name_problem if linked_data else name_problem
    for name, attribute in attributes.items():
        if name_problem_of(name) is not None:
            found.add("attr-syntax", f"the attribute name {named(name)} {name_problem_of(name)}")
        if type(attribute) is not dict or "value" not in attribute:
            _tell_about_shape(name, attribute, found, linked_data=linked_data)
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
            _tell_about_null(name, kind, found)
            continue
        if not (allow_intervals and is_interval(str(kind), value)):
            meaning.check(name, value, now, found)
        if meaning.place and not _is_ignored(metadata):
            places += 1
    # An entity of NGSI-LD may have several: where it is, where it acts, and what it observes.
    if places > 1 and not linked_data:
        found.add("geojson", f"{places} attributes are places; all but one need the metadata {_IGNORED_PLACE}")


def _tell_about_shape(name: str, attribute: object, found: Findings, *, linked_data: bool) -> None:
    if linked_data and isinstance(attribute, dict):
        # A relationship written with a value has one, as its author sees it.
        kind = str(attribute.get("type"))
        found.add("attr-shape", f"{named(name)} is a {named(kind)} without the member {named(value_member(kind))}")
    else:
        found.add("attr-shape", f"{named(name)} isn't an object with a value")


def _tell_about_null(name: str, kind: object, found: Findings) -> None:
    found.add("null-value", f"{named(name)} is null, but its type {kind} needs a value")


def _check_other_type(name: str, kind: object, found: Findings) -> None:
    if not isinstance(kind, str):
        # NGSIv2 lets a broker choose a type that isn't given.
        if kind is not None:
            found.add("attr-syntax", f"the type of {named(name)} isn't a text")
        return
    problem = type_problem(kind)
    if problem is not None:
        found.add("attr-syntax", f"the type {named(kind)} of {named(name)} {problem}")


def _check_metadata(name: str, metadata: object, found: Findings, *, named_here: bool) -> None:
    if not isinstance(metadata, dict):
        found.add("attr-shape", f"the metadata of {named(name)} isn't an object")
        return
    for metadata_name, member in metadata.items():
        if not isinstance(member, dict) or "value" not in member:
            found.add("attr-shape", f"the metadata {named(metadata_name)} of {named(name)} has no value")
            continue
        if not named_here:
            continue
        kind = member.get("type")
        problem = type_problem(metadata_name) or (type_problem(kind) if isinstance(kind, str) else None)
        if problem is not None:
            found.add("attr-syntax", f"name or type of the metadata {named(metadata_name)} of {named(name)} {problem}")


def _is_ignored(metadata: object) -> bool:
    flag = metadata.get(_IGNORED_PLACE) if isinstance(metadata, dict) else None
    return isinstance(flag, dict) and flag.get("value") is True
