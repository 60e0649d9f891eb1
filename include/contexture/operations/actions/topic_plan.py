"""The topics of publications, as their files and their state name them, compared with those of their clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.kafka import TopicSpec
from contexture.kafka.topics import TopicChange, TopicsPlan, apply_plan, plan_topics
from contexture.operations import environment
from contexture.operations.actions.connection_check import settings_of
from contexture.operations.environment import publications_folder
from contexture.publications import Publication, load_publications
from contexture.publications.delivery import KEY_NONE
from contexture.sending.size_limits import dead_letter_spec, topic_spec
from contexture.storage.home import Home, ProgressCallback
from contexture.storage.publication_store import PublicationStore

_MADE_NAME = "{"


@dataclass(slots=True)
class DesiredTopics:
    """What the publications of one connection want: their topics, and those whose records have keys."""

    specs: list[TopicSpec] = field(default_factory=list)
    keyed: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class PlannedTopics:
    """The plan for one connection; `made`: what was changed, None where only a plan was asked for."""

    connection: str
    plan: TopicsPlan
    made: tuple[TopicChange, ...] | None = None


def plans(paths: Sequence[Path], progress: ProgressCallback) -> list[PlannedTopics]:
    """Compares the topics of publications with those of their clusters.

    Args:
        paths: publication files or folders; the folder of publications when empty.
        progress: receives a sentence while brokers are waited for.

    Raises:
        ConfigurationError: no such file, a file that can't be used, or a connection that isn't there.
        BrokersAwayError: a cluster did not answer.
    """
    found = _wanted(paths).items()
    return [
        PlannedTopics(each, plan_topics(settings_of(each), want.specs, frozenset(want.keyed), progress=progress))
        for each, want in found
    ]


def applied(paths: Sequence[Path], progress: ProgressCallback, *, grow_keyed: bool) -> list[PlannedTopics]:
    """The same, and then makes the changes that can be made. Raises as `plans`, and as `apply_plan`."""
    return [
        PlannedTopics(
            each.connection, each.plan, apply_plan(settings_of(each.connection), each.plan, grow_keyed=grow_keyed)
        )
        for each in plans(paths, progress)
    ]


def _wanted(paths: Sequence[Path]) -> dict[str, DesiredTopics]:
    given = paths or [publications_folder()]
    return wanted(environment.open_home(), _publications(given))


def wanted(home: Home, publications: Iterable[Publication]) -> dict[str, DesiredTopics]:
    """What publications want, by the id of their connection: the topics that they name, and those that were sent to."""
    found: dict[str, DesiredTopics] = {}
    for publication in publications:
        want = found.setdefault(publication.publish.connection, DesiredTopics())
        for topic in topics_of(home.publication(publication.name), publication):
            want.specs.append(topic_spec(publication, topic))
            if publication.message.key != KEY_NONE:
                want.keyed.add(topic)
        want.specs.extend(filter(None, [dead_letter_spec(publication)]))
    return found


def _publications(paths: Iterable[Path]) -> list[Publication]:
    found = [publication for path in paths for publication in load_publications(path)]
    if not found:
        raise ConfigurationError("there is no publication file", next_step="name a folder with .yaml files")
    return found


def topics_of(store: PublicationStore, publication: Publication) -> list[str]:
    """The topics that a publication's file names, and those that it has sent to."""
    named = {name for name in publication.topics.written_names if _MADE_NAME not in name}
    for piece in store.state.reader(store.state.pointer()).pieces(["topics"]):
        named.update(piece.column("topics").combine_chunks().flatten().unique().to_pylist())
    return sorted(named)
