"""Defaults that depend on the kind of the source."""

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

_OF_OPERATIONS: Mapping[str, Mapping[str, object]] = {
    "source": {"connection": "operational_tables"},
    "topics": {"naming": "fixed", "keep": "history"},
    "message": {"format": "operations", "envelope": "cloudevents-binary"},
    "publish": {"shards": 1},
    "resync": {"on_config_change": "pending"},
}

_BY_KIND = {"sdmx": _OF_REGISTRIES, "operations": _OF_OPERATIONS}

Key = tuple[str, str]


def with_defaults(data: object) -> tuple[object, tuple[Key, ...]]:
    """The value of a publication file with the defaults of its kind, and the keys that they fill in."""
    source = data.get("source") if isinstance(data, Mapping) else None
    kind = source.get("kind") if isinstance(source, Mapping) else None
    of_kind = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if not isinstance(data, Mapping) or of_kind is None:
        return data, ()
    completed: dict[str, Any] = dict(data)
    filled: list[Key] = []
    for section, defaults in of_kind.items():
        written = data.get(section, {})
        # What is no section is told as such, and what is null too.
        if isinstance(written, Mapping):
            completed[section] = {**defaults, **written}
            filled += [(section, key) for key in defaults if key not in written]
    return completed, tuple(filled)


def default_of(kind: str, section: str, key: str) -> object:
    """What a key of that kind is where nobody writes it; None where that doesn't depend on the kind."""
    return _BY_KIND.get(kind, {}).get(section, {}).get(key)


def mark_as_defaults(publication: Publication, filled: tuple[Key, ...]) -> None:
    """Makes what was filled in look like what it is: nobody wrote it."""
    for section, key in filled:
        getattr(publication, section).model_fields_set.discard(key)
