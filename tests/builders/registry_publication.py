"""A publication of a registry, as the quality of structures is judged by."""

from __future__ import annotations

from contexture.publications import SdmxPublication
from contexture.publications.quality import Quality
from contexture.publications.source import SdmxSource


def registry_publication(select: tuple[str, ...] = (), **quality: object) -> SdmxPublication:
    """A publication of structures with these selectors and this section `quality`."""
    source = SdmxSource.model_validate({"kind": "sdmx", "connection": "registry", "select": select})
    return SdmxPublication.model_construct(
        name="structures", description="", source=source, quality=Quality.model_validate(quality)
    )
