"""Verifies a publication with what the environment gives: its file, its home, its Kafka connection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from contexture.cli import home
from contexture.cli.kafka_connections import settings_of
from contexture.cli.named_publication import named_publication
from contexture.operations import Journal, ProducerStore
from contexture.operations.verification.replica_topics import KafkaTopics
from contexture.operations.verification.reporting import Reported, verify_and_report


def verified(
    name: str, files: Path | None, *, timeout_seconds: float, report: Callable[[str], None] = lambda sentence: None
) -> Reported:
    """What verifying a publication found; raises as `verify_and_report`.

    Raises:
        ConfigurationError: there is no such publication or connection.
    """
    storage, publication = home.open_home(), named_publication(name, files)
    topics = KafkaTopics(settings_of(publication.publish.connection), publication, timeout_seconds=timeout_seconds)
    with Journal(ProducerStore.of_home(storage.root), report) as journal:
        return verify_and_report(storage, publication, topics, journal=journal, report=report)
