"""Opens what the tasks work on: the home, and the Kafka behind a publication's connection."""

from __future__ import annotations

from contexture.publications import Publication
from contexture.sending.target import KafkaTarget, Report, Target, TargetFor
from contexture.storage.archive import Interval
from contexture.storage.home import Storage, home_uri
from contexture_airflow.connections import kafka_settings


def open_storage() -> Storage:
    """The files below `CONTEXTURE_HOME`."""
    return Storage(home_uri())


def targets(report: Report) -> TargetFor:
    """Opens the Kafka that a publication's connection names; what takes long is told to `report`.

    The opener raises a ConfigurationError when the connection is missing or can not be used.
    """

    def open_target(publication: Publication, interval: Interval | None) -> Target:
        return KafkaTarget(kafka_settings(publication.publish.connection), publication, interval, report)

    return open_target
