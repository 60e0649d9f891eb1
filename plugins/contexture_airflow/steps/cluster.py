"""Which Kafka cluster a connection leads to."""

from __future__ import annotations

from typing import Final

from contexture.errors import RetriableError
from contexture.kafka import ClientSettings
from contexture.kafka.clients import admin, client_error, error_in
from contexture.kafka.patience import Patience
from contexture.kafka.watch import ClientWatch

_CALL_SECONDS: Final = 2.0
_NO_TOPIC: Final = "__consumer_offsets"


def cluster_id(settings: ClientSettings, patience: Patience) -> str:
    """The id that the cluster gave itself when it was made.

    Raises:
        RetriableError: no broker answers, or the brokers have no id.
        KafkaConfigurationError: the brokers refuse this user.
    """
    watch = ClientWatch()
    client = admin(settings, watch)
    while True:
        try:
            found = client.list_topics(topic=_NO_TOPIC, timeout=_CALL_SECONDS).cluster_id
        except client_error() as failure:
            watch.raise_refusal("reaching the brokers")
            patience.waited(watch.last_words(error_in(failure)))
        else:
            return _checked(found)


def _checked(found: str | None) -> str:
    if not found:
        raise RetriableError(
            "the Kafka brokers do not say which cluster they are", next_step="use brokers of version 2.8 or later"
        )
    return found
