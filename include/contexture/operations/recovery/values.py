"""What the value of a record tells beside its content: the entity in it, the structures that a structure refers to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from contexture.events import parse_json
from contexture.operations.verification.contents import content_reader, told_structure
from contexture.publications import Publication

EntityReader = Callable[[bytes | None], Mapping[str, Any]]
"""Gives the entity in a value, or nothing of it where it can't be read."""


class Told(NamedTuple):
    """What a value tells.

    Attributes:
        content: the content hash, as state has it; None where nobody can tell it.
        references: URNs of the structures that a structure refers to.
    """

    content: bytes | None
    references: tuple[str, ...] = ()


ValueReader = Callable[[bytes], Told]


def value_reader(publication: Publication) -> ValueReader:
    """What tells the values of a publication."""
    structured = publication.message.envelope == "cloudevents-structured"
    if publication.message.format == "sdmx":

        def read(value: bytes) -> Told:
            content, references = told_structure(value, structured=structured)
            return Told(content or None, references)

        return read
    content_of = content_reader(publication)
    if content_of is None:
        return lambda value: Told(None)
    return lambda value: Told(content_of(value) or None)


def entity_reader(publication: Publication) -> EntityReader:
    """What gives the entities in the values of a publication whose format is ngsiv2."""
    structured = publication.message.envelope == "cloudevents-structured"

    def read(value: bytes | None) -> Mapping[str, Any]:
        try:
            found = parse_json(value or b"")
        except (ValueError, TypeError, RecursionError):
            return {}
        if structured and isinstance(found, dict):
            found = found.get("data")
        return found if isinstance(found, dict) else {}

    return read
