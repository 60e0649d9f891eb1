"""How the topics of a publication differ from what its file says; the brokers are asked at that moment."""

from __future__ import annotations

from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Final

from contexture.errors import ContextureError
from contexture.kafka.topics import TopicsPlan, plan_topics
from contexture.operations.actions.topic_plan import wanted
from contexture.operations.status.sources import Sources
from contexture_airflow.connections import kafka_settings

SHOWN: Final = 200
_WAIT_SECONDS: Final = 15.0
_AT_ONCE: Final = BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class Drift:
    """What was found; `problem`: why nothing was."""

    plan: TopicsPlan | None = None
    problem: str = ""


def drift(sources: Sources, name: str) -> Drift:
    """The plan that `contexture topics plan` shows, of one publication."""
    publication = sources.publications.get(name)
    if publication is None:
        return Drift(problem="there is no good publication file of this name")
    if not _AT_ONCE.acquire(blocking=False):
        return Drift(problem="the brokers are being asked already: try again in some seconds")
    try:
        [(connection, want)] = wanted(sources.storage, [publication]).items()
        settings = kafka_settings(connection)
        return Drift(plan_topics(settings, want.specs, frozenset(want.keyed), wait_seconds=_WAIT_SECONDS))
    except ContextureError as error:
        return Drift(problem=str(error))
    finally:
        _AT_ONCE.release()
