"""The selectors of a publication, read whole: the model itself checks no more than their shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from contexture.sdmx.selector_parts import SelectorError
from contexture.sdmx.selectors import Selector

if TYPE_CHECKING:
    from contexture.publications import Publication

Place = tuple[str | int, ...]
"""Where in the file a selector stands, as a path from its top."""


def unreadable(publication: Publication) -> Iterator[tuple[Place, SelectorError]]:
    """The selectors that can't be read, each with its place and the reason."""
    for place, text in _written(publication):
        try:
            Selector.parse(text)
        except SelectorError as error:
            yield place, error


def _written(publication: Publication) -> Iterator[tuple[Place, str]]:
    for number, text in enumerate(publication.source.select):
        yield ("source", "select", number), text
    for number, route in enumerate(publication.topics.routes):
        yield ("topics", "routes", number, "select"), route.select
