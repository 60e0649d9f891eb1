"""A publication's topics as it wants them."""

from __future__ import annotations

from contexture.kafka.record_size import structure_topic_config
from contexture.kafka.topics import TopicSpec
from contexture.publications import Publication


def topic_spec(publication: Publication, topic: str) -> TopicSpec:
    """One topic of a publication; those of a registry have room for the largest structure."""
    wanted = publication.topics
    is_registry = publication.source.kind == "sdmx"
    return TopicSpec(
        name=topic,
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        config=structure_topic_config(wanted.config) if is_registry else wanted.config,
        keep=wanted.keep,
    )
