"""Rebuilding lost state with what the environment gives: publication files, the home, a Kafka connection."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from contexture.cli import home
from contexture.cli.checking import DEFAULT_FOLDER, FOLDER_VARIABLE
from contexture.cli.kafka_connections import settings_of
from contexture.errors import ConfigurationError
from contexture.kafka import TopicFilter
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import Patience
from contexture.operations.recovery.candidates import candidates
from contexture.operations.recovery.rebuildable import check_differences, check_rebuildable
from contexture.operations.recovery.rebuilding import Rebuilding, RebuiltState, rebuilding
from contexture.operations.verification.replica_topics import KafkaTopics
from contexture.publications import Publication, load_publications

_WAIT_SECONDS = 60.0


@contextmanager
def opened(
    name: str, pattern: str | None, *, only_differences: bool, report: Callable[[str], None]
) -> Iterator[tuple[Rebuilding, RebuiltState]]:
    """The topics of a publication, read, and the state that can be made of them; raises as `rebuilding`.

    Args:
        name: of the publication.
        pattern: of the topics to read; None for those that may hold its records.
        only_differences: the run that follows is to send only what differs.
        report: gets a sentence now and then.

    Raises:
        ConfigurationError: there is no such publication or connection, or its state can't be made from topics.
    """
    known = _publications()
    if name not in known:
        raise ConfigurationError(
            f"there is no publication {name}",
            next_step=f"choose among: {', '.join(sorted(known))}, or set {FOLDER_VARIABLE} as Airflow has it",
        )
    publication = known[name]
    check_rebuildable(publication)
    if only_differences:
        check_differences(publication)
    settings = settings_of(publication.publish.connection)
    listed = TopicAdmin(settings, Patience(_WAIT_SECONDS)).listed()
    names = TopicFilter(pattern).chosen(listed) if pattern else candidates(publication, listed)
    topics, others = KafkaTopics(settings, publication), [each for each in known.values() if each.name != name]
    with rebuilding(home.open_home(), publication, topics, names, others=others, report=report) as made:
        yield made


def _publications() -> dict[str, Publication]:
    folder = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
    return {publication.name: publication for publication in load_publications(folder)}
