"""Makes the clients of confluent-kafka; the import happens here, when the first one is needed."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from contexture.errors import ContextureError
from contexture.kafka.callbacks import CERTIFICATE_ALERT, ClientCallbacks
from contexture.kafka.error_codes import misconfigured
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.interfaces import KafkaErrorLike, ListsTopics, TransactionalProducer
from contexture.kafka.settings import ClientSettings, Option

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

# `M_MXFAST` of glibc's malloc.h.
_LARGEST_FAST_PIECE: Final = 1


@cache
def tune_malloc() -> None:
    """Lets glibc merge small freed pieces of memory when they are freed, for the rest of this process.

    By default it stores pieces of up to 128 bytes, and searches all of them whenever a large piece is requested.
    The client asks for such a piece for each header and frees it in another thread, so hundreds of
    thousands are stored: that took 22 to 29 % of the processor time of a sender with five headers a record (measured).
    Without headers it makes no difference. Other C libraries have nothing of the kind, and stay as they are.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_LARGEST_FAST_PIECE, 0)


@cache
def disable_clients_after_fork() -> None:
    """Prevents every later child of a fork from ending this process's clients.

    The threads of a client are its parent's alone. A child whose garbage collector finds a client that its parent no
    longer uses ends it, and waits for these threads without limit (seen in the children in which Airflow's OpenLineage
    provider reports a task's end). So the collector of a child never frees what there was before the fork.
    """
    os.register_at_fork(after_in_child=gc.freeze)


# librdkafka would write every lost connection to standard error; what matters of it reaches the watch.
_LOG = logging.getLogger("contexture.kafka.client")
_LOG.setLevel(logging.CRITICAL)
# Where no logging is set up, Python would write the rest to standard error: errors contain it.
_LOG.addHandler(logging.NullHandler())
_TLS = "_SSL"
_KERBEROS = "No provider for SASL mechanism GSSAPI"

T = TypeVar("T")


def client_error() -> type[Exception]:
    """Returns the exception class of the client, for `except client_error()` (looked up only when something failed)."""
    from confluent_kafka import KafkaException

    return KafkaException


def call_errors() -> tuple[type[Exception], ...]:
    """Returns what calls of a producer raise, for `except call_errors()`; `error_in` gives the Kafka error.

    A fatal error is raised by whatever call serves callbacks. When a delivery report is served by the same call, it is
    run with that exception already raised, and Python makes a SystemError of it. Under load the client has also been
    seen to fail a call without any exception set, which is a SystemError too.
    """
    return (client_error(), SystemError)


def call_client(call: Callable[[], T]) -> T:
    """Returns the result of a call of the client.

    A fatal error that a call meets while it serves callbacks can come as the bare error. That is no exception for
    Python: no `except Exception` catches it, and no traceback can be written of it. Here it becomes what other errors
    come as.
    """
    from confluent_kafka import KafkaError

    bare: KafkaError | None = None
    try:
        return call()
    except KafkaError as error:  # type: ignore[misc]
        bare = error
    # Out here, so that it is not the context of what is raised.
    raise client_error()(bare)


def error_in(failure: BaseException) -> KafkaErrorLike:
    """Returns the Kafka error inside an exception of the client; `_FAIL` where it has none."""
    from confluent_kafka import KafkaError

    if isinstance(failure, SystemError) and isinstance(failure.__cause__, client_error()):
        failure = failure.__cause__
    inner = failure.args[0] if failure.args else None
    return cast(KafkaErrorLike, inner if isinstance(inner, KafkaError) else KafkaError(KafkaError._FAIL, str(failure)))


def transactional_producer(
    settings: ClientSettings, transactional_id: str, watch: ClientCallbacks
) -> TransactionalProducer:
    """Returns a new producer that reports to `watch`; it is not connected yet.

    Raises:
        KafkaConfigurationError: the client refuses the settings.
    """
    from confluent_kafka import Producer

    tune_malloc()
    _prepare(watch, settings)
    callbacks = {"error_cb": watch.on_error, "on_delivery": watch.on_delivery, "logger": _Listening(watch)}
    # Success is reported only on request: it costs time for every record.
    reports = {"delivery.report.only.error": watch.delivered is None}
    options: dict[str, object] = {**settings.producer(transactional_id), **reports, **callbacks}
    # Only this part of the client's log has the response to each request to end a transaction (`ClientCallbacks`).
    options["debug"] = ",".join(filter(None, ("eos", str(options.get("debug", "")))))
    try:
        return cast(TransactionalProducer, Producer(dict(options)))
    except (client_error(), ValueError, TypeError) as problem:
        raise _unusable(problem, settings) from None


def reader(
    settings: ClientSettings,
    watch: ClientCallbacks,
    *,
    isolation: str = "read_committed",
    own: Mapping[str, Option] = MappingProxyType({}),
) -> Consumer:
    """A new consumer that reports to `watch`, for explicit partitions and offsets unless its `own` options say more."""
    from confluent_kafka import Consumer

    _prepare(watch, settings)
    common = settings.consumer(isolation=isolation)
    options: dict[str, object] = {**common, **own, "error_cb": watch.on_error}
    try:
        return Consumer(options, logger=_LOG)
    except (client_error(), ValueError, TypeError) as problem:
        raise _unusable(problem, settings) from None


def connect(client: ListsTopics, topic: str | None, seconds: float) -> None:
    """Lets a client connect and learn where a topic (or every topic) is, before it is given work.

    Given work first, it finds no broker connected and sleeps for half a second. Failures are left to the work.
    """
    with suppress(client_error()):
        client.list_topics(topic, timeout=seconds)


def admin(settings: ClientSettings, watch: ClientCallbacks) -> AdminClient:
    from confluent_kafka.admin import AdminClient

    _prepare(watch, settings)
    # Any: the stubs of the client leave callbacks out.
    options: dict[str, Any] = {**settings.admin(), "error_cb": watch.on_error}
    try:
        return AdminClient(options, logger=_LOG)
    except (client_error(), ValueError, TypeError) as problem:
        raise _unusable(problem, settings) from None


class _Listening:
    """A client's logger that passes on what the client reports nowhere else."""

    def __init__(self, watch: ClientCallbacks) -> None:
        self._watch = watch

    def log(self, level: int, message: str, *parts: object) -> None:
        """For the client: the last part is the text."""
        self._watch.on_log(str(parts[-1]) if parts else message)
        _LOG.log(level, message, *parts)


def _prepare(watch: ClientCallbacks, settings: ClientSettings) -> None:
    """What every client needs before it is made."""
    disable_clients_after_fork()
    _explain(watch, settings)


def _explain(watch: ClientCallbacks, settings: ClientSettings) -> None:
    """Lets refused handshakes and silent brokers be looked into; all else the client says well enough."""

    def explain(error: KafkaErrorLike, doing: str) -> ContextureError | None:
        from contexture.kafka.diagnosis import explain_handshake

        is_tls = error.name() == _TLS or CERTIFICATE_ALERT.search(error.str())
        return explain_handshake(settings, error, doing) if is_tls else None

    def look(doing: str) -> ContextureError | None:
        from contexture.kafka.diagnosis import other_protocol

        return other_protocol(settings, doing)

    watch.explain, watch.look = explain, look
    watch.clean = settings.without_secrets


def _unusable(problem: Exception, settings: ClientSettings) -> Exception:
    """Returns the error of a client that can't be made; `from None`, because the client may quote its options."""
    said = error_in(problem).str() if isinstance(problem, client_error()) else str(problem)
    text = settings.without_secrets(said).strip()
    if _KERBEROS in text:
        return _no_kerberos(settings)
    from contexture.kafka import diagnosis, properties

    found = properties.refusal_of(text) or diagnosis.explain_tls_files(settings.admin(), text)
    return found or misconfigured(ValueError(text))


def _no_kerberos(settings: ClientSettings) -> Exception:
    asked = (
        "sasl.mechanism is GSSAPI" if "sasl.mechanism" in settings.options else "without sasl.mechanism it is GSSAPI"
    )
    return KafkaConfigurationError(
        f"this Kafka client was built without Kerberos ({asked})",
        next_step="get a client with it in one of two ways: install librdkafka-dev from Confluent's package repository "
        "(with libsasl2-modules-gssapi-mit), or build librdkafka from source where libsasl2-dev is; after either, run "
        "pip install --force-reinstall --no-binary confluent-kafka confluent-kafka. Or set sasl.mechanism to one that "
        "needs no Kerberos",
    )
