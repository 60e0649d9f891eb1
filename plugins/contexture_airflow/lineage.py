"""Lineage of concluded outboxes, from their source to their topics, for Airflow's OpenLineage provider.

The provider requests it from operators, only where it is installed and has a collector to send it to: it is an extra
(`contexture[openlineage]`). Topics are named as OpenLineage wants it (`kafka://broker:port`); it has no names for
context brokers and registries, which are named by the address of their connection and by what is read there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from contexture.publications import NgsiSource
from contexture.storage.outboxes import Outboxes
from contexture.storage.publication_store import PublicationStore
from contexture_airflow.connections.settings import kafka_settings, source_connection

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

    from contexture.publications import Publication
    from contexture.storage.manifests import Manifest

MOST_TOPICS: Final = 500
"""How many topics one event names; those with most records come first."""

_OWN: Final = ("contexture", "operations")


def build_lineage(store: PublicationStore, outboxes: Iterable[str]) -> OperatorLineage[Any, Any]:
    """The sources of a publication's outboxes and the topics they went to, with their numbers of records.

    An outbox that is not concluded, or has no records, adds nothing: a dry run sends nowhere.

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

    sources: dict[tuple[str, str], None] = {}
    sent: Counter[tuple[str, str]] = Counter()
    for manifest in _concluded(store.outboxes, outboxes):
        staged = store.run(manifest.run).order().publication
        sources[source_name(staged)] = None
        brokers = kafka_namespace(kafka_settings(staged.publish.connection).bootstrap_servers)
        counts = store.outbox(manifest.outbox).topic_counts()
        sent.update({(brokers, topic): records for topic, records in counts.items()})
    largest = sorted(sent.items(), key=lambda each: (-each[1], each[0]))[:MOST_TOPICS]
    return OperatorLineage(
        inputs=[Dataset(namespace=namespace, name=name) for namespace, name in sources],
        outputs=[
            OutputDataset(
                namespace=brokers,
                name=topic,
                outputFacets={"outputStatistics": OutputStatisticsOutputDatasetFacet(rowCount=records)},
            )
            for (brokers, topic), records in largest
        ],
    )


def no_lineage() -> OperatorLineage[Any, Any]:
    """Returns an empty lineage, because of None the provider complains in the task's log."""
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage()


def source_name(publication: Publication) -> tuple[str, str]:
    """Namespace and name of what a publication reads: where it is, and what of it."""
    source = publication.source
    if not source.has_content:
        return _OWN
    address = urlsplit(source_connection(source.connection, source.kind).address)
    namespace = f"{address.scheme}://{address.hostname}{f':{address.port}' if address.port else ''}"
    if not isinstance(source, NgsiSource):
        return namespace, f"{address.path.strip('/') or 'registry'}/structure"
    paths = ",".join(source.service_path)
    return namespace, f"{source.service}{paths}" if source.service else paths


def kafka_namespace(bootstrap_servers: str) -> str:
    """The first of the brokers in order of their text, so that the order in a connection does not matter."""
    servers = sorted(server.strip() for server in bootstrap_servers.split(",") if server.strip())
    first = servers[0].rsplit("://", 1)[-1]
    return f"kafka://{first}" if ":" in first else f"kafka://{first}:9092"


def _concluded(outboxes: Outboxes, names: Iterable[str]) -> Iterator[Manifest]:
    for name in names:
        if outboxes.status(name).status == "concluded" and (manifest := outboxes.manifest(name)).records:
            yield manifest
