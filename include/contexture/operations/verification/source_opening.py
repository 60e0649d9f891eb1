"""Opening the source of a publication for a comparison, whatever kind it is."""

from __future__ import annotations

from contextlib import AbstractContextManager

from contexture.errors import DefectError
from contexture.operations.verification.answerable import check_answerable
from contexture.operations.verification.broker_view import open_broker_view
from contexture.operations.verification.registry_view import open_registry_view
from contexture.operations.verification.source_view import SourceView
from contexture.publications import Publication
from contexture.sources.ngsi import BrokerConnection
from contexture.sources.sdmx.registry import RegistryConnection


def open_source_view(
    publication: Publication, connection: BrokerConnection | RegistryConnection
) -> AbstractContextManager[SourceView]:
    """Returns what opens the source of a publication, and closes it.

    Args:
        publication: whose source.
        connection: the broker's or the registry's, as `source.kind` says.

    Raises:
        ConfigurationError: the publication cannot be compared with its source.
    """
    check_answerable(publication)
    if publication.source.kind == "sdmx" and isinstance(connection, RegistryConnection):
        return open_registry_view(publication, connection)
    if publication.source.kind == "ngsi" and isinstance(connection, BrokerConnection):
        return open_broker_view(publication, connection)
    raise DefectError("the connection is not of the source's kind", next_step="report this")
