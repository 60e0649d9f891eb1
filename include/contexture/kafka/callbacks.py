"""What a client reports on its callbacks: the only place where some causes are ever named."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Final, cast

from contexture.errors import ContextureError
from contexture.kafka.error_codes import REFUSALS, ErrorClass, classify_error, translate_error
from contexture.kafka.interfaces import KafkaErrorLike, MessageLike

# What befalls a record or a call because something else went wrong before.
_CONSEQUENCES: Final = frozenset(
    {"_PURGE_QUEUE", "_PURGE_INFLIGHT", "_FATAL", "_STATE", "_INCONSISTENT", "_INVALID_DIFFERENT_RECORD"}
)


# Since TLS 1.3 a broker refuses a client's certificate after the handshake, and the client calls it a lost connection.
CERTIFICATE_ALERT: Final = re.compile(r"SSL alert number (?:42|43|44|45|46|48|116)\b")

# What a client reports that reaches no broker, and of a broker that requires no login.
_UNREACHABLE: Final = frozenset({"_ALL_BROKERS_DOWN", "_TRANSPORT"})
_NO_LOGIN: Final = "not valid in current SASL state"
_LOOK_EVERY_SECONDS: Final = 30.0

# Why a transaction failed while records were added to it, and of which topic, is in the client's log alone.
_FAILED: Final = re.compile(r"Current transaction failed in state \w+: (?P<text>.*) \((?P<name>\w+)\)$", re.DOTALL)
_DENIED: Final = re.compile(r'Failed to add partition "(.+)" \[\d+\] to transaction: .*Topic authorization failed')
# Each answer to a request that ends a transaction, or its loss: librdkafka sends it again without any other word.
_ENDED: Final = re.compile(r"\bEndTxn returned (?P<name>\w+)")
_WELL: Final = frozenset({"NO_ERROR", "_NO_ERROR"})

_LOG: Final = logging.getLogger(__name__)

Explain = Callable[[KafkaErrorLike, str], ContextureError | None]
"""Takes a refusal and what was attempted; returns a more exact error than the client's, None if there is none."""

Look = Callable[[str], ContextureError | None]
"""Takes what was attempted; returns the error of brokers that speak another protocol, None if they do not."""


class ClientCallbacks:
    """The reports of one client that explain a later failure, without secrets that the client quotes.

    A wrong password or an unknown authority makes calls only time out, and a refused record makes a commit only say
    how many failed: the reasons come here.

    Attributes:
        ends: names of the answers to requests that end a transaction, since `begin_end`.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.fatal: KafkaErrorLike | None = None
        self.last: KafkaErrorLike | None = None
        self.refused: KafkaErrorLike | None = None
        self.undelivered: tuple[KafkaErrorLike, str | None] | None = None
        self._failed: KafkaErrorLike | None = None
        self._denied: str | None = None
        self.explain: Explain = lambda error, doing: None
        self.look: Look = lambda doing: None
        self._is_silent = False
        self._looked_at: float | None = None
        self.ends: list[str] = []
        self.clean: Callable[[str], str] = lambda text: text
        self.delivered: Callable[[KafkaErrorLike | None, MessageLike], None] | None = None

    @property
    def has_failed(self) -> bool:
        """Whether a record was refused, or the client can do nothing more."""
        return self.undelivered is not None or self.fatal is not None

    def on_error(self, error: KafkaErrorLike) -> None:
        """For `error_cb`."""
        text = self.clean(error.str())
        error = error if text == error.str() else _with_text(error, text)
        self.last = error
        self._is_silent = self._is_silent or error.name() in _UNREACHABLE
        if error.name() in REFUSALS or CERTIFICATE_ALERT.search(error.str()):
            self.refused = error
        elif error.fatal():
            self.fatal = error

    def on_log(self, text: str) -> None:
        """For the client's logger."""
        ended = _ENDED.search(text)
        if ended is not None:
            self.ends.append(ended["name"])
        denied, failed = _DENIED.search(text), _FAILED.search(text)
        if denied is not None and self._denied is None:
            self._denied = denied[1]
        if failed is not None:
            error = _error_of(failed["name"], self.clean(failed["text"]))
            self._failed = error if error is not None and classify_error(error) is ErrorClass.CONFIGURATION else None

    def begin_end(self) -> None:
        """A transaction is to be ended now: what came of earlier ones is of no more interest."""
        self.ends.clear()

    @property
    def ended_at_once(self) -> bool:
        """Whether a transaction was ended by one request, which was answered well.

        Otherwise a copy of the request may be under way still. It would end the producer's next transaction: brokers
        cannot distinguish the two as long as the producer's epoch is the same. A client that logs none of its requests
        counts as uncertain.
        """
        return len(self.ends) == 1 and self.ends[0] in _WELL

    def on_delivery(self, error: KafkaErrorLike | None, message: MessageLike) -> None:
        """For `on_delivery`; the first failure shows most, and records thrown away with a transaction show nothing."""
        if self.delivered is not None:
            self._report_delivery(error, message)
        if error is not None and self.undelivered is None and error.name() not in _CONSEQUENCES:
            self.undelivered = (error, message.topic())

    def _report_delivery(self, error: KafkaErrorLike | None, message: MessageLike) -> None:
        assert self.delivered is not None  # asked by the caller
        try:
            self.delivered(error, message)
        except Exception as problem:
            # Its text may quote the record.
            _LOG.warning("the delivery callback raised %s", type(problem).__name__)

    def raise_refusal(self, doing: str) -> None:
        """Raises what no waiting can repair.

        Raises:
            KafkaConfigurationError: the brokers refused this user or the TLS handshake.
        """
        if self.refused is not None:
            found = self.look(doing) if _NO_LOGIN in self.refused.str() else self.explain(self.refused, doing)
            raise found or translate_error(self.refused, doing)
        if self._is_silent and self._is_time_to_look():
            # A client with TLS on a port without it, or the other way round, never receives more than that.
            found = self.look(doing)
            if found is not None:
                raise found

    def _is_time_to_look(self) -> bool:
        now = self._clock()
        if self._looked_at is not None and now - self._looked_at < _LOOK_EVERY_SECONDS:
            return False
        # What was reported before counts once: a connection may be lost now and then for no reason.
        self._looked_at, self._is_silent = now, False
        return True

    def cause(self, otherwise: KafkaErrorLike) -> tuple[KafkaErrorLike, str | None]:
        """Returns the error that explains a failure best, and its topic if it has one."""
        if self.undelivered is not None:
            return self.undelivered
        if otherwise.name() in _CONSEQUENCES and self.fatal is not None:
            return self.fatal, None
        if otherwise.name() in _CONSEQUENCES and self._failed is not None:
            otherwise = self._failed
        return otherwise, self._denied if otherwise.name() == "TOPIC_AUTHORIZATION_FAILED" else None

    def last_error(self, otherwise: KafkaErrorLike) -> str:
        """Why brokers seem to be away, as far as the client knows."""
        error = self.last or otherwise
        return f"{error.name()}: {error.str()}"


def _error_of(name: str, text: str) -> KafkaErrorLike | None:
    from confluent_kafka import KafkaError

    code = getattr(KafkaError, name, None)
    return cast(KafkaErrorLike, KafkaError(code, text)) if isinstance(code, int) else None


def _with_text(error: KafkaErrorLike, text: str) -> KafkaErrorLike:
    from confluent_kafka import KafkaError

    flags = (error.fatal(), error.retriable(), error.txn_requires_abort())
    return cast(KafkaErrorLike, KafkaError(error.code(), text, *flags))
