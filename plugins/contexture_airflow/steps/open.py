"""Opens what the tasks work on: the home, and the Kafka behind a publication's connection."""

from __future__ import annotations

from contexture.outbox.storage import Storage, home_uri
from contexture.publications import Publication
from contexture_airflow.connections import kafka_settings
from contexture_airflow.steps.run import Interval
from contexture_airflow.steps.target import KafkaTarget, Target


def open_storage() -> Storage:
    """The files below `CONTEXTURE_HOME`."""
    return Storage(home_uri())


def open_target(publication: Publication, interval: Interval | None) -> Target:
    """The Kafka that the publication's connection names.

    Raises:
        ConfigurationError: the connection is missing or can not be used.
    """
    return KafkaTarget(kafka_settings(publication.publish.connection), publication, interval)
