"""What a publication selects of its broker, as queries of a walk."""

from __future__ import annotations

from collections.abc import Iterator

from contexture.publications import Publication
from contexture.sources.ngsi import EntityQuery


def queries_of(publication: Publication) -> Iterator[EntityQuery]:
    """Gives a query for each service path, along the time of creation, which never moves."""
    source = publication.source
    # Scopes of NGSI-LD are selected at once, because an entity may have several.
    paths = (",".join(source.service_path),) if source.api == "ngsi-ld" else source.service_path
    for path in paths:
        yield EntityQuery(
            service_path=path,
            types=source.types,
            ids=source.ids,
            id_pattern=source.id_pattern,
            type_pattern=source.type_pattern,
            q=source.query,
            mq=source.metadata_query,
            attributes=source.attributes,
            georel=source.georel,
            geometry=source.geometry,
            coords=source.coords,
            page_size=source.page_size,
        )
