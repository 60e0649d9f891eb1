"""Which publications can be compared with their source."""

from __future__ import annotations

from contexture.errors import ConfigurationError
from contexture.operations.verification.verify import basis_of
from contexture.publications import Publication, SdmxPublication
from contexture.sources.sdmx.formats import splittable


def check_answerable(publication: Publication) -> None:
    """Checks that a publication's topics can be compared with its source at all.

    Raises:
        ConfigurationError: they cannot, and why.
    """
    reason = _unanswerable(publication)
    if reason is not None:
        raise ConfigurationError(
            f"publication {publication.name} cannot be verified against its source: {reason}",
            next_step="verify it against what was sent (--against sent)",
            publication=publication.name,
        )


def is_answerable(publication: Publication) -> bool:
    """Returns whether a publication's topics can be compared with its source."""
    return _unanswerable(publication) is None


def _unanswerable(publication: Publication) -> str | None:
    if not publication.source.has_content:
        return "its source is Contexture itself, whose events happen once"
    if isinstance(publication, SdmxPublication):
        return _unanswerable_structures(publication)
    if basis_of(publication) == "records":
        return "its records have no key of their own, so nothing says which is the last one of an entity"
    if publication.source.mode == "notifications":
        return "it publishes what its source notifies, which may be a part of an entity"
    return None


def _unanswerable_structures(publication: SdmxPublication) -> str | None:
    if publication.message.allow_lossy:
        return "it may convert structures (message.allow_lossy), which no longer have the registry's content then"
    if publication.source.media_type is not None and not splittable(publication.source.media_type):
        return f"structures in {publication.source.media_type} cannot be taken apart"
    return None
