"""The topics that a publication requires."""

from __future__ import annotations

from typing import Final

from contexture.kafka.topics import TopicSpec
from contexture.publications import Publication, SdmxPublication
from contexture.sending.dead_letters import DeadLetters
from contexture.sending.size_limits import structure_topic_config

_DAY_MS: Final = 86_400_000


def topic_spec(publication: Publication, topic: str) -> TopicSpec:
    """One topic of a publication; those of a registry have room for the largest structure."""
    wanted = publication.topics
    return TopicSpec(
        name=topic,
        partitions=wanted.partitions,
        replication_factor=wanted.replication_factor,
        config=structure_topic_config(wanted.config) if isinstance(publication, SdmxPublication) else wanted.config,
        keep=wanted.keep,
    )


def dead_letters_of(publication: Publication) -> DeadLetters | None:
    """Returns where a publication's records go that can never be sent; None where they stop the sending."""
    topic = publication.dead_letter_topic
    return None if topic is None else DeadLetters(topic, publication.publish.max_dead_letters)


def dead_letter_spec(publication: Publication) -> TopicSpec | None:
    """Returns the publication's dead-letter topic, if it has one: every letter is kept for as long as its run."""
    if publication.dead_letter_topic is None:
        return None
    return TopicSpec(
        name=publication.dead_letter_topic,
        replication_factor=publication.topics.replication_factor,
        config={"retention.ms": str(publication.retention.archive_days * _DAY_MS)},
    )
