"""What a connection to a source leads to, as far as that is said anywhere: a context broker or a structure registry."""

from __future__ import annotations

from contexture.cli.known_publications import known_publications
from contexture.cli.registry_trial import RegistryTrial
from contexture.publications.source import SourceKind


def source_kind(connection_id: str, registry: RegistryTrial, *, service: str, media_type: str) -> SourceKind | None:
    """The kind of the source behind a connection; None where nobody says it.

    Args:
        connection_id: of the connection.
        registry: knows whether the connection itself says that it leads to a registry.
        service: given for a context broker alone.
        media_type: given for a structure registry alone.
    """
    if media_type or registry.is_said:
        return "sdmx"
    return "ngsi" if service else _of_publications(connection_id)


def _of_publications(connection_id: str) -> SourceKind | None:
    """What the publications read that use the connection, if they agree."""
    sources = [each.source for each in known_publications()]
    kinds = {source.kind for source in sources if source.connection == connection_id}
    return kinds.pop() if len(kinds) == 1 else None
