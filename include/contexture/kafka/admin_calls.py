"""Questions to brokers over one connection, asked again as long as nobody answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from contexture.kafka.clients import admin, client_error, error_in
from contexture.kafka.error_table import Meaning, meaning, translated
from contexture.kafka.patience import Patience
from contexture.kafka.ports import KafkaErrorLike
from contexture.kafka.settings import ClientSettings
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

CALL_SECONDS = 10.0
# Short enough that a refused login or a missing broker is soon told; a listing that timed out is asked for again.
LISTING_SECONDS = 3.0
BULK = 500
# What a user has to be allowed, by what is tried; DESCRIBE is enough for anything else.
_NEEDED: Mapping[str, str] = {
    "making": "CREATE",
    "growing": "ALTER",
    "configuring": "ALTER_CONFIGS",
    "reading the configuration of": "DESCRIBE_CONFIGS",
}

T = TypeVar("T")


class AdminCalls:
    """Those of one admin client, which is made with the first of them.

    Args:
        settings: the connection.
        patience: how long brokers are waited for.
    """

    def __init__(self, settings: ClientSettings, patience: Patience) -> None:
        self._settings = settings
        self._patience = patience
        self._watch = ClientWatch()

    @cached_property
    def _client(self) -> AdminClient:
        return admin(self._settings, self._watch)

    def _until_answered(self, call: Callable[[], T], doing: str, topic: str | None = None) -> T:
        while True:
            try:
                answer = call()
            except client_error() as failure:
                self._client.poll(0)
                self._wait_or_raise(error_in(failure), doing, topic)
            else:
                self._patience.relieve()
                return answer

    def _settle(self, call: Callable[[], Mapping[str, Future[None]]], doing: str) -> None:
        """Makes the call until every answer is a success or says that it was done before."""
        waiting = call()
        while waiting:
            again = [name for name, future in waiting.items() if not self._settled(future, doing, name)]
            if not again:
                break
            waiting = {name: future for name, future in call().items() if name in set(again)}
        self._patience.relieve()

    def _settled(self, future: Future[None], doing: str, name: str) -> bool:
        try:
            future.result()
        except client_error() as failure:
            error = error_in(failure)
            if _was_done_before(error):
                return True
            self._wait_or_raise(error, doing, name)
            return False
        return True

    def _wait_or_raise(self, error: KafkaErrorLike, doing: str, topic: str | None = None) -> None:
        self._client.poll(0)
        self._watch.raise_refusal(f"{doing} topics")
        if meaning(error) not in {Meaning.SAME_CALL_AGAIN, Meaning.SEND_AGAIN, Meaning.BROKERS_AWAY}:
            raise translated(error, f"{doing} topics", topic=topic, needs=_NEEDED.get(doing, "DESCRIBE"))
        self._patience.waited(self._watch.last_words(error))


def _was_done_before(error: KafkaErrorLike) -> bool:
    return error.name() == "TOPIC_ALREADY_EXISTS" or (
        error.name() == "INVALID_PARTITIONS" and "already has" in error.str()
    )
