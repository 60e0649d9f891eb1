"""Defaults that depend on the kind of the source: what nobody who reads a registry should have to write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contexture.publications.publication import Publication

STRUCTURE_FORM = "application/vnd.sdmx.structure+xml;version=2.1"
"""SDMX-ML 2.1, which every registry writes."""

_OF_REGISTRIES: Mapping[str, Mapping[str, object]] = {
    "source": {"media_type": STRUCTURE_FORM},
    "topics": {"naming": "fixed"},
    "message": {"format": "sdmx"},
    "publish": {"shards": 1},
}

Key = tuple[str, str]


def with_defaults(data: object) -> tuple[object, tuple[Key, ...]]:
    """The value of a publication file with the defaults of its kind, and the keys that they fill in."""
    source = data.get("source") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(source, Mapping) or source.get("kind") != "sdmx":
        return data, ()
    completed: dict[str, Any] = dict(data)
    filled: list[Key] = []
    for section, defaults in _OF_REGISTRIES.items():
        written = data.get(section, {})
        # What is no section is told as such, and what is null too.
        if isinstance(written, Mapping):
            completed[section] = {**defaults, **written}
            filled += [(section, key) for key in defaults if key not in written]
    return completed, tuple(filled)


def mark_as_defaults(publication: Publication, filled: tuple[Key, ...]) -> None:
    """Makes what was filled in look like what it is: nobody wrote it."""
    for section, key in filled:
        getattr(publication, section).model_fields_set.discard(key)
