"""Verifies a publication with what the environment gives: its file, its home, its Kafka connection."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from contexture.cli import home
from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.cli.kafka_connections import settings_of
from contexture.errors import ConfigurationError
from contexture.operations import Journal, ProducerStore
from contexture.operations.verification.replica_topics import KafkaTopics
from contexture.operations.verification.reporting import Reported, verify_and_report
from contexture.publications import Publication, load_publications


def verified(
    name: str, files: Path | None, *, timeout_seconds: float, report: Callable[[str], None] = lambda sentence: None
) -> Reported:
    """What verifying a publication found; raises as `verify_and_report`.

    Raises:
        ConfigurationError: there is no such publication or connection.
    """
    storage, publication = home.open_home(), _publication(name, files)
    topics = KafkaTopics(settings_of(publication.publish.connection), publication, timeout_seconds=timeout_seconds)
    with Journal(ProducerStore.of_home(storage.root), report) as journal:
        return verify_and_report(storage, publication, topics, journal=journal, report=report)


def _publication(name: str, files: Path | None) -> Publication:
    folder = files or Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    known = {publication.name: publication for publication in load_publications(folder)}
    if name not in known:
        raise ConfigurationError(
            f"there is no publication {name!r} in {folder}",
            next_step=f"choose among: {', '.join(sorted(known))}" if known else f"set {FOLDER_VARIABLE}",
        )
    return known[name]
