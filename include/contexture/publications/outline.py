"""The keys of a publication, as the model declares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, get_args, get_origin

from pydantic.json_schema import SkipJsonSchema

from contexture.publications.fields import Section
from contexture.publications.publication import Publication

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from contexture.publications.findings import Location


def section_at(location: Location) -> type[Section] | None:
    """The section that stands at a location, also inside a list or under a free key; None elsewhere."""
    section: type[Section] | None = Publication
    for part in location:
        if isinstance(part, str) and section is not None and part in section.model_fields:
            section = _section_in(section.model_fields[part].annotation)
    return section


def field_at(location: Location) -> FieldInfo | None:
    """The declaration of the key at a location, or of the key whose value holds it."""
    for end in range(len(location), 0, -1):
        section, key = section_at(location[: end - 1]), location[end - 1]
        if section is not None and isinstance(key, str) and key in section.model_fields:
            return section.model_fields[key]
    return None


def written_keys(section: type[Section]) -> list[str]:
    """The keys of a section that people write; those that Contexture fills in are hidden from editors too."""
    return [name for name, field in section.model_fields.items() if not _is_hidden(field)]


def leaves(section: type[Section] = Publication, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every key that holds a value rather than a section, in the order of the model."""
    for name, field in section.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, Section):
            yield from leaves(annotation, (*above, name))
        else:
            yield (*above, name)


def _is_hidden(field: FieldInfo) -> bool:
    return SkipJsonSchema in map(type, field.metadata)


def _section_in(annotation: object) -> type[Section] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, Section) else None
    arguments = get_args(annotation)
    for argument in arguments[:1] if get_origin(annotation) is Annotated else arguments:
        found = _section_in(argument)
        if found is not None:
            return found
    return None
