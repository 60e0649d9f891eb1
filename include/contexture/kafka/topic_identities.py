"""Kafka's own ids of topics: a topic that was removed and made again has the same name and another id."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple

from contexture.errors import RetriableError
from contexture.kafka.admin import CALL_SECONDS, AdminCalls
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.clients import client_error, error_in
from contexture.kafka.settings import ClientSettings

if TYPE_CHECKING:
    from confluent_kafka.admin import TopicDescription

MADE_SECONDS: Final = 60.0
"""How long `TopicIdentities.ids_of_all` waits for topics that exist: brokers learn of a new topic one by one."""
TOPICS_OF_A_REQUEST: Final = 10_000
"""An answer with so many topics took 0.4 to 2.5 s on a busy machine of two cores; a request may take 10 s."""

HIDDEN: Final = ""
"""The id of a topic that this user may not see, so that nothing can be found out of it."""

_FORBIDDEN: Final = "TOPIC_AUTHORIZATION_FAILED"
_UNKNOWN: Final = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"})
_LOOKS: Final = 3
_POLL_SECONDS: Final = 0.1


def topic_ids(
    settings: ClientSettings,
    names: Iterable[str],
    *,
    all_exist: bool = False,
    wait_seconds: float = 300.0,
    progress: Callable[[str], None] = lambda sentence: None,
) -> dict[str, str]:
    """Returns Kafka's ids of topics by their names, in one request for each 10,000 of them.

    No topic is made by asking for it, also where brokers make topics by themselves.

    Args:
        settings: the connection.
        names: of the topics.
        all_exist: every topic was made or found a moment ago; those that the answering broker does not know yet are
            asked for again.
        wait_seconds: how long brokers are waited for.
        progress: gets a sentence now and then while they are.

    Returns:
        Without the topics that do not exist; `HIDDEN` for those that this user may not see. Brokers without ids of
        topics give all of them the same one.

    Raises:
        KafkaConfigurationError: the brokers refuse this user.
        RetriableError: no broker answers, or a topic that exists stays unknown.
    """
    wanted = sorted(set(names))
    if not wanted:
        return {}
    identities = TopicIdentities(settings, BrokerWait(wait_seconds, progress))
    return identities.ids_of_all(wanted) if all_exist else identities.ids(wanted)


class _Outcome(NamedTuple):
    """The id of a topic, None if there is none; and whether the brokers have responded."""

    topic_id: str | None
    is_answered: bool


class TopicIdentities(AdminCalls):
    """The ids of a cluster's topics."""

    def ids(self, names: Sequence[str]) -> dict[str, str]:
        """Returns the ids of the topics that exist.

        Each request is answered by any broker, and one that is behind does not know a new topic yet: what is unknown is
        asked for three times.
        """
        found: dict[str, str] = {}
        for look in range(_LOOKS):
            time.sleep(_POLL_SECONDS if look else 0)
            found |= self._described([name for name in names if name not in found])
            if len(found) == len(names):
                break
        return found

    def ids_of_all(self, names: Sequence[str], seconds: float = MADE_SECONDS) -> dict[str, str]:
        """Returns the ids of topics that exist.

        Raises:
            RetriableError: one of them is unknown for so long.
        """
        until = time.monotonic() + seconds
        found = self.ids(names)
        while missing := [name for name in names if name not in found]:
            if time.monotonic() > until:
                raise RetriableError(
                    f"{len(missing)} topics that existed a moment ago are unknown now, the first is {missing[0]}",
                    next_step="clear the task: it creates missing topics; if it fails again, check whether something "
                    "removes topics, and whether this user may DESCRIBE them",
                )
            time.sleep(_POLL_SECONDS)
            found |= self._described(missing)
        return found

    def _described(self, names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for first in range(0, len(names), TOPICS_OF_A_REQUEST):
            found |= self._described_at_once(names[first : first + TOPICS_OF_A_REQUEST])
        return found

    def _described_at_once(self, names: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        waiting = list(names)
        while waiting:
            again = []
            for name, future in self._describe(waiting).items():
                topic_id, is_answered = self._outcome(name, future)
                if topic_id is not None:
                    found[name] = topic_id
                elif not is_answered:
                    again.append(name)
            waiting = again
        self._broker_wait.reset()
        return found

    def _describe(self, names: list[str]) -> dict[str, Future[TopicDescription]]:
        from confluent_kafka import TopicCollection

        return self._until_answered(
            lambda: self._client.describe_topics(TopicCollection(names), request_timeout=CALL_SECONDS), "describing"
        )

    def _outcome(self, name: str, future: Future[TopicDescription]) -> _Outcome:
        try:
            return _Outcome(str(future.result().topic_id), True)
        except client_error() as failure:
            error = error_in(failure)
            if error.name() in _UNKNOWN:
                return _Outcome(None, True)
            if error.name() == _FORBIDDEN:
                return _Outcome(HIDDEN, True)
            self._wait_or_raise(error, "describing", name)
            return _Outcome(None, False)
