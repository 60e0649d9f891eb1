"""Records of a connection's test: sent in a transaction, committed, and read back."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from contexture.kafka.opening import open_session
from contexture.kafka.patience import Patience
from contexture.kafka.read_back import ReadBack, read_back
from contexture.kafka.session import Session
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import TopicAdmin

_KBYTE: Final = 1024
_BYTES_A_SECOND: Final = 1_000_000
_DEFAULT_LARGEST_BYTES: Final = 1_000_000
# What the client adds to key, value and headers before it compares them with message.max.bytes.
_OVERHEAD_BYTES: Final = 36


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that came back, and this machine's time (Unix, seconds) before and after it was sent."""

    before: float
    record: ReadBack
    after: float


class TrialRecords:
    """Sends records under one transactional id.

    Args:
        settings: the connection.
        transactional_id: also the key of the records.
        timeout_seconds: for each record; a second more for each megabyte.

    Attributes:
        largest_bytes: the connection's `message.max.bytes`.
    """

    def __init__(self, settings: ClientSettings, transactional_id: str, timeout_seconds: float) -> None:
        self.largest_bytes = int(settings.options.get("message.max.bytes", _DEFAULT_LARGEST_BYTES))
        self._settings = _with_room(settings, self.largest_bytes)
        self._transactional_id = transactional_id
        self._timeout_seconds = timeout_seconds

    @property
    def largest_value_bytes(self) -> int:
        """How long the value of the largest record is."""
        return max(1, self.largest_bytes - len(self._transactional_id.encode()) - _OVERHEAD_BYTES)

    def initialise(self) -> None:
        """Only asks for the right to the transactional id.

        Raises:
            KafkaConfigurationError: it is refused.
            BrokersAwayError: nobody answers.
        """
        session = self._session("contexture.connection-test", self._timeout_seconds)
        try:
            session.initialise()
        finally:
            session.close()

    def send(self, topic: str, value: bytes) -> Sent:
        """One record, committed and read back.

        Raises:
            ContextureError, SendAgainError: as of `Session`; nothing of it is visible then.
        """
        key, seconds = self._transactional_id.encode(), self._timeout_seconds + len(value) / _BYTES_A_SECOND
        patience = Patience(self._timeout_seconds)
        start = TopicAdmin(self._settings, patience).ends([(topic, 0)], committed=False)[topic, 0]
        session = self._session(topic, seconds)
        try:
            session.initialise()
            before = time.time()
            session.begin()
            session.produce_one(topic, key=key, value=value, partition=0)
            session.commit()
            after = time.time()
        finally:
            session.close()
        return Sent(before, read_back(self._settings, topic, start, key, seconds), after)

    def _session(self, topic: str, seconds: float) -> Session:
        return open_session(self._settings, self._transactional_id, Patience(seconds), ledger_topic=topic)


def _with_room(settings: ClientSettings, largest_bytes: int) -> ClientSettings:
    # A queue that the connection makes smaller than its largest record would hide what the brokers say.
    needed, given = 2 * largest_bytes // _KBYTE, settings.options
    if int(given.get("queue.buffering.max.kbytes", needed)) >= needed:
        return settings
    return ClientSettings(MappingProxyType({**given, "queue.buffering.max.kbytes": needed}))
