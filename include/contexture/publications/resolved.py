"""A publication with the value that will be used for every key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from contexture.publications.fields import PublicationModel
from contexture.publications.publication import Publication

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
