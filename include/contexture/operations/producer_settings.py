"""By which settings publications send, for people who look for them in the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import delete

from contexture.operations.access import TableAccess
from contexture.operations.tables import CONNECTION_SETTINGS, PRODUCER_PROPERTIES
from contexture.publications import Publication
from contexture.publications.resolved import understood
from contexture.sources.sdmx.formats import Format


class ProducerSettings(TableAccess):
    """The tables of producer properties and connection settings."""

    def producer_sends_by(
        self, publication: str, properties: Sequence[str], *, connection: str, settings: Mapping[str, str]
    ) -> None:
        """Keeps a publication's properties, in their order, and its connection's settings, in place of those before.

        Args:
            publication: its name.
            properties: as `properties_of` gives them.
            connection: id of the connection.
            settings: of the Kafka client, without secrets.
        """
        properties_table, settings_table = PRODUCER_PROPERTIES.c, CONNECTION_SETTINGS.c
        with self._writing() as writing:
            writing.execute(
                delete(PRODUCER_PROPERTIES).where(
                    properties_table.publication == publication, properties_table.line_number >= len(properties)
                )
            )
            writing.execute(
                delete(CONNECTION_SETTINGS).where(
                    settings_table.connection == connection, settings_table.name.not_in(settings)
                )
            )
            # Row by row in one order: publications of one connection may be planned at the same time.
            for number, line in enumerate(properties):
                row = {"publication": publication, "line_number": number, "property": line}
                writing.execute(self._replacing(PRODUCER_PROPERTIES, row))
            for name, value in sorted(settings.items()):
                option = {"connection": connection, "name": name, "value": value}
                writing.execute(self._replacing(CONNECTION_SETTINGS, option))


def topics_of(publication: Publication) -> str:
    """Returns how a publication names its topics: the names in its file, routes included, or its naming."""
    topics = publication.topics
    named = dict.fromkeys([*topics.topics, *(name for route in topics.routes for name in route.topics)])
    return ",".join(named) or f"{topics.naming} {topics.data_model}"


def format_of(publication: Publication) -> str:
    """Returns the form of a publication's records: of structures the media type, else `message.format`."""
    if publication.source.kind == "sdmx":
        return publication.source.media_type or Format.SDMX_ML_2_1.media_type
    return str(publication.message.format)


def properties_of(publication: Publication) -> list[str]:
    """The publication as it is understood, defaults with it: `batches.batch_size=1`, values as YAML writes them."""
    return list(_properties(publication))


def _properties(publication: Publication) -> Iterator[str]:
    path: list[str] = []
    for each in understood(publication):
        path = [*path[: each.depth], each.key]
        if each.value is not None:
            yield f"{'.'.join(path)}={each.value}"
