"""The keys of a publication as they are used: the value of each, and the fingerprint of those that change records.

A key at its default is left out, so a key that a later version adds changes no fingerprint of today.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from contexture.publications.fields import ChangesNoRecord, ChangesRecords, PublicationModel
from contexture.publications.publication import PUBLICATIONS, Publication


@cache
def keys_that_change_records() -> tuple[str, ...]:
    """The keys of all kinds of publications that are marked `ChangesRecords`, such as `source.types`, in order."""
    return tuple(key for key, mark in marks() if isinstance(mark, ChangesRecords))


def marks() -> Iterator[tuple[str, object]]:
    """Yields each key that holds a value with its mark, once; None where it has none."""
    seen = dict[str, object]()
    for model in PUBLICATIONS.values():
        collect_marks(model, "", seen)
    yield from seen.items()


def collect_marks(section: type[PublicationModel], above: str, seen: dict[str, object]) -> None:
    """Adds the mark of each key of a section whose name begins with `above`, unless it is there already."""
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, PublicationModel):
            collect_marks(field.annotation, f"{above}{name}.", seen)
        else:
            found = (each for each in field.metadata if isinstance(each, ChangesRecords | ChangesNoRecord))
            seen.setdefault(f"{above}{name}", next(found, None))


_LEFT_OUT: Mapping[str, object] = {
    "source.connection": None,
    "source.media_type": None,
    "topics.naming": "cygnus",
    "topics.keep": "latest",
    "message.format": "ngsiv2",
    "message.envelope": "none",
}
"""The value that the canonical form leaves out, where a kind of source has a default of its own."""

# In these lists the order says nothing.
_UNORDERED = frozenset(
    {"source.service_path", "source.types", "source.ids", "source.attributes", "source.select", "topics.topics"}
)


def canonical_json(publication: Publication) -> bytes:
    """The keys that can change a record or its destination, where they aren't at their defaults, in one fixed form."""
    chosen = {key: value for key in keys_that_change_records() if (value := _value(publication, key)) is not None}
    return json.dumps(chosen, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def fingerprint(publication: Publication) -> str:
    """SHA-256 of the canonical form, in hexadecimal: equal for publications whose records are equal."""
    return sha256(canonical_json(publication)).hexdigest()


def _value(publication: Publication, key: str) -> object:
    section, _, name = key.rpartition(".")
    owner = getattr(publication, section) if section else publication
    field = type(owner).model_fields.get(name)
    if field is None:
        return None
    value = getattr(owner, name)
    if value == _LEFT_OUT.get(key, field.default):
        return None
    if key == "topics.routes":
        return [route.model_dump(mode="json") for route in value]
    return sorted(value) if key in _UNORDERED else value


CONTENTS = {"quality": {"model_documents"}, "topics": {"grouping_rules_content", "name_mappings_content"}}
"""Whole files, which are no part of what people wrote."""

# What YAML reads back as the same text without quotes.
_PLAIN = re.compile(r"^(?!(?:true|false|null|~)$)[A-Za-z/][\w./#: -]*(?<![: #])$", re.ASCII | re.IGNORECASE)
_HIDDEN_KEYS = frozenset().union(*CONTENTS.values())


@dataclass(frozen=True, slots=True)
class ResolvedKey:
    """One line of a publication.

    Attributes:
        depth: of its section, from 0.
        key: its name.
        value: as YAML writes it on one line; None for the line that opens a section.
        is_default: whether the file does not contain it.
    """

    depth: int
    key: str
    value: str | None
    is_default: bool


def resolve_keys(publication: Publication) -> Iterator[ResolvedKey]:
    """The keys that mean something for the publication's kind of source, in the order of the model, sections opened."""
    return _keys(publication, publication, 0, "")


def _keys(publication: Publication, section: PublicationModel, depth: int, name: str) -> Iterator[ResolvedKey]:
    for key in type(section).model_fields:
        value = getattr(section, key)
        if isinstance(value, PublicationModel):
            yield ResolvedKey(depth, key, None, is_default=False)
            yield from _keys(publication, value, depth + 1, key)
        elif key not in _HIDDEN_KEYS and publication.has_meaning(name, key):
            yield ResolvedKey(depth, key, _yaml(value), is_default=key not in section.model_fields_set)


def _yaml(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, PublicationModel):
        return _yaml(value.model_dump(exclude_unset=True))
    if isinstance(value, str) and _PLAIN.match(value):
        return value
    return json.dumps(value, ensure_ascii=False)
