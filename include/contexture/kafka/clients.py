"""Where clients of confluent-kafka are made; the import happens here, when the first one is needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from contexture.kafka.error_table import misconfigured, translated
from contexture.kafka.ports import KafkaErrorLike, ListsTopics, TransactionalProducer
from contexture.kafka.settings import ClientSettings
from contexture.kafka.watch import ClientWatch

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

# librdkafka would write every lost connection to standard error; what matters of it reaches the watch.
_LOG = logging.getLogger("contexture.kafka.client")
_LOG.setLevel(logging.CRITICAL)


def client_error() -> type[Exception]:
    """The exception class of the client, for `except client_error()` (looked up only when something failed)."""
    from confluent_kafka import KafkaException

    return KafkaException


def error_in(failure: BaseException) -> KafkaErrorLike:
    """The Kafka error inside an exception of the client."""
    from confluent_kafka import KafkaError

    inner = failure.args[0] if failure.args else None
    return cast(KafkaErrorLike, inner if isinstance(inner, KafkaError) else KafkaError(KafkaError._FAIL, str(failure)))


def transactional_producer(
    settings: ClientSettings, transactional_id: str, watch: ClientWatch
) -> TransactionalProducer:
    """A new producer that reports to `watch`; it is not connected yet.

    Raises:
        KafkaConfigurationError: the client refuses the settings.
    """
    from confluent_kafka import Producer

    callbacks = {"error_cb": watch.on_error, "on_delivery": watch.on_delivery, "logger": _LOG}
    options: Mapping[str, object] = {**settings.producer(transactional_id), **callbacks}
    try:
        return cast(TransactionalProducer, Producer(dict(options)))
    except (client_error(), ValueError, TypeError) as problem:
        raise _unusable(problem) from problem


def reader(settings: ClientSettings, watch: ClientWatch, *, isolation: str = "read_committed") -> Consumer:
    """A new consumer that reports to `watch`, for explicit partitions and offsets."""
    from confluent_kafka import Consumer

    options: dict[str, object] = {**settings.consumer(isolation=isolation), "error_cb": watch.on_error}
    try:
        return Consumer(options, logger=_LOG)
    except (client_error(), ValueError, TypeError) as problem:
        raise _unusable(problem) from problem


def connect(client: ListsTopics, topic: str | None, seconds: float) -> None:
    """Lets a client connect and learn where a topic (or every topic) is, before it is given work.

    Given work first, it finds no broker connected and sleeps for half a second. Failures are left to the work.
    """
    with suppress(client_error()):
        client.list_topics(topic, timeout=seconds)


def admin(settings: ClientSettings, watch: ClientWatch) -> AdminClient:
    """A new admin client that reports to `watch`."""
    from confluent_kafka.admin import AdminClient

    options: dict[str, Any] = {**settings.admin(), "error_cb": watch.on_error}
    try:
        return AdminClient(options, logger=_LOG)
    except (client_error(), ValueError, TypeError) as problem:
        raise _unusable(problem) from problem


def _unusable(problem: Exception) -> Exception:
    if isinstance(problem, client_error()):
        error = error_in(problem)
        if error.name() in {"_INVALID_ARG", "_NOT_IMPLEMENTED", "_SSL"}:
            return translated(error, "making a Kafka client")
    return misconfigured(problem)
