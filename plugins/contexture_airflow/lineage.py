"""Lineage of a concluded run, from its source to its topics, for Airflow's OpenLineage provider.

The provider asks operators for it, and only where it is installed and has somewhere to tell it to: it is an extra
(`contexture[openlineage]`). Topics are named as OpenLineage wants it (`kafka://broker:port`); it has no names for
context brokers and registries, which are named by the address of their connection and by what is read there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.storage import Storage
from contexture_airflow.connections import kafka_settings, source_connection
from contexture_airflow.steps.run import Staged
from contexture_airflow.steps.sending import staged_publication, topic_counts

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from contexture.publications import Publication

MOST_TOPICS: Final = 500
"""How many topics one event names; those with most records come first."""


def lineage_of(storage: Storage, staged: Staged) -> OperatorLineage | None:
    """The source that a run read and the topics it sent to, with their numbers of records; None if nothing was sent.

    Raises:
        ConfigurationError: a connection is missing or can not be used.
        RetriableError: the storage did not answer.
    """
    from airflow.providers.common.compat.openlineage.facet import (
        Dataset,
        OutputDataset,
        OutputStatisticsOutputDatasetFacet,
    )
    from airflow.providers.openlineage.extractors import OperatorLineage

    manifest = Outboxes(storage, staged.publication).manifest(staged.outbox)
    if not manifest.records:
        return None
    publication = staged_publication(storage, staged.publication, staged.run)
    namespace, name = source_name(publication)
    brokers = kafka_namespace(kafka_settings(publication.publish.connection).bootstrap_servers)
    counts = sorted(topic_counts(storage, manifest).items(), key=lambda each: (-each[1], each[0]))
    return OperatorLineage(
        inputs=[Dataset(namespace=namespace, name=name)],
        outputs=[
            OutputDataset(
                namespace=brokers,
                name=topic,
                outputFacets={"outputStatistics": OutputStatisticsOutputDatasetFacet(rowCount=records)},
            )
            for topic, records in counts[:MOST_TOPICS]
        ],
    )


def source_name(publication: Publication) -> tuple[str, str]:
    """Namespace and name of what a publication reads: where it is, and what of it."""
    source = publication.source
    address = urlsplit(source_connection(source.connection, source.kind).address)
    namespace = f"{address.scheme}://{address.hostname}{f':{address.port}' if address.port else ''}"
    if source.kind == "sdmx":
        return namespace, f"{address.path.strip('/') or 'registry'}/structure"
    paths = source.service_path if isinstance(source.service_path, str) else ",".join(source.service_path)
    return namespace, f"{source.service}{paths}" if source.service else paths


def kafka_namespace(bootstrap_servers: str) -> str:
    """The first of the brokers in order of their text, so that the order in a connection does not matter."""
    servers = sorted(server.strip() for server in bootstrap_servers.split(",") if server.strip())
    first = servers[0].rsplit("://", 1)[-1]
    return f"kafka://{first}" if ":" in first else f"kafka://{first}:9092"
