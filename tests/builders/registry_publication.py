"""A publication of a registry, as the quality of structures is judged by."""

from __future__ import annotations

from contexture.publications import Publication
from contexture.publications.quality import Quality
from contexture.publications.source import Source


def registry_publication(select: tuple[str, ...] = (), **quality: object) -> Publication:
    """A publication of structures with these selectors and this section `quality`."""
    source = Source.model_validate({"kind": "sdmx", "connection": "registry", "select": select})
    return Publication.model_construct(
        name="structures", description="", source=source, quality=Quality.model_validate(quality)
    )
