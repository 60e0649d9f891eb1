"""Checks a Kafka connection step by step: each with its time, its result and what to do."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from contexture.errors import ContextureError, RejectedError
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.callbacks import ClientCallbacks
from contexture.kafka.clients import admin, client_error, error_in, reader
from contexture.kafka.diagnosis import AddressProbe, probe_addresses
from contexture.kafka.error_codes import ErrorClass, classify_error, translate_error
from contexture.kafka.errors import SendAgainError
from contexture.kafka.producer import ProducerSession, open_session
from contexture.kafka.settings import ClientSettings

_POLL_SECONDS: Final = 0.5
_END: Final = "_PARTITION_EOF"
_HEALED_BY_WAITING: Final = frozenset({ErrorClass.SAME_CALL_AGAIN, ErrorClass.SEND_AGAIN, ErrorClass.BROKERS_AWAY})


@dataclass(frozen=True, slots=True)
class ReadBack:
    """A record as it lies in its topic; whether its timestamp is the broker's."""

    value: bytes = field(repr=False)
    timestamp_ms: int
    is_brokers_time: bool


def read_back(settings: ClientSettings, topic: str, start: int, key: bytes, seconds: float) -> ReadBack:
    """Returns the first committed record with a key in partition 0 of a topic, from an offset on.

    Raises:
        BrokersAwayError: it does not come.
        KafkaConfigurationError: this user may not read it.
    """
    from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, TopicPartition

    watch, broker_wait = ClientCallbacks(), BrokerWait(seconds)
    consumer = reader(settings, watch)
    try:
        consumer.assign([TopicPartition(topic, 0, start)])
        while True:
            message = consumer.poll(_POLL_SECONDS)
            watch.raise_refusal("reading back")
            error = message.error() if message is not None else None
            if message is None or (error is not None and error.name() == _END):
                broker_wait.check("the committed record did not arrive")
            elif error is not None:
                if classify_error(error) not in _HEALED_BY_WAITING:
                    raise translate_error(error, "reading back", topic=topic, needs="READ")
                broker_wait.check(f"{error.name()}: {error.str()}")
            elif message.key() == key:
                kind, moment = message.timestamp()
                return ReadBack(message.value() or b"", moment, kind == TIMESTAMP_LOG_APPEND_TIME)
    except client_error() as failure:
        raise translate_error(error_in(failure), "reading back", topic=topic, needs="READ") from failure
    finally:
        consumer.close()


_KBYTE: Final = 1024
_BYTES_A_SECOND: Final = 1_000_000
_DEFAULT_LARGEST_BYTES: Final = 1_000_000
# What the client adds to key, value and headers before it compares them with message.max.bytes.
_OVERHEAD_BYTES: Final = 36
# A record that does not compress travels with a header of its batch, and a codec may add a little.
_ROOM_OF_TOPIC_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class SentTestRecord:
    """A record that came back, and this machine's time (Unix, seconds) before and after it was sent."""

    before: float
    record: ReadBack
    after: float


class CheckRecords:
    """Sends records under one transactional id, which is also their key.

    A megabyte of a record adds a second to its time-out.

    Args:
        settings: the connection.
        transactional_id: of all of them.
        timeout_seconds: for each.
        record_bytes: of the largest record, in place of the connection's own limit.

    Attributes:
        largest_bytes: of key, value and headers: `record_bytes`, or the connection's `message.max.bytes`.
    """

    def __init__(
        self, settings: ClientSettings, transactional_id: str, timeout_seconds: float, record_bytes: int | None = None
    ) -> None:
        if record_bytes is not None:
            settings = ClientSettings(MappingProxyType({**settings.options, "message.max.bytes": record_bytes}))
        self.largest_bytes = int(settings.options.get("message.max.bytes", _DEFAULT_LARGEST_BYTES))
        self._settings = _with_room(settings, self.largest_bytes)
        self._transactional_id = transactional_id
        self._timeout_seconds = timeout_seconds

    @property
    def largest_value_bytes(self) -> int:
        return max(1, self.largest_bytes - len(self._transactional_id.encode()) - _OVERHEAD_BYTES)

    def initialise(self) -> None:
        """Checks the right to the transactional id alone.

        Raises:
            KafkaConfigurationError: it is refused.
            BrokersAwayError: no one answers.
        """
        session = self._session("contexture.connection-test", self._timeout_seconds)
        try:
            session.initialise()
        finally:
            session.close()

    def send(self, topic: str, value: bytes) -> SentTestRecord:
        """One record, committed and read back.

        Raises:
            ContextureError, SendAgainError: as of `ProducerSession`; nothing of it is visible then.
        """
        key, seconds = self._transactional_id.encode(), self._timeout_seconds + len(value) / _BYTES_A_SECOND
        broker_wait = BrokerWait(self._timeout_seconds)
        start = TopicAdmin(self._settings, broker_wait).ends([(topic, 0)], committed=False)[topic, 0]
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
        return SentTestRecord(before, read_back(self._settings, topic, start, key, seconds), after)

    def _session(self, topic: str, seconds: float) -> ProducerSession:
        return open_session(self._settings, self._transactional_id, BrokerWait(seconds), ledger_topic=topic)


def _with_room(settings: ClientSettings, largest_bytes: int) -> ClientSettings:
    # A queue that the connection makes smaller than its largest record would hide what the brokers say.
    needed, given = 2 * largest_bytes // _KBYTE, settings.options
    if int(given.get("queue.buffering.max.kbytes", needed)) >= needed:
        return settings
    return ClientSettings(MappingProxyType({**given, "queue.buffering.max.kbytes": needed}))


_CALL_SECONDS: Final = 1.0
# Tokens and event times bear less than this.
_CLOCK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a step went: passed (None: it could not be checked), what was found, and what to do."""

    passed: bool | None
    detail: str
    remedy: str = ""


class ConnectionCheck:
    """The steps of one test of a connection, `log_in` first; without an existing topic it makes one."""

    def __init__(
        self,
        settings: ClientSettings,
        timeout_seconds: float,
        transactional_id: str,
        topic: str | None,
        record_bytes: int | None = None,
    ) -> None:
        self._record_bytes = record_bytes
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._transactional_id = transactional_id
        self._given_topic = self._topic = topic
        self._records = CheckRecords(settings, transactional_id, timeout_seconds, record_bytes)
        self._watch = ClientCallbacks()
        self._admin = admin(settings, self._watch)
        self._sent: SentTestRecord | None = None
        self.cluster_id: str | None = None
        self.brokers: tuple[str, ...] = ()

    @property
    def topic_is_ours(self) -> bool:
        """Whether a topic was made that has to be removed."""
        return self._topic is not None and self._topic != self._given_topic

    def log_in(self) -> CheckResult:
        """Requests the cluster's metadata, which only users get."""
        broker_wait = BrokerWait(self._timeout_seconds)
        while True:
            try:
                metadata = self._admin.list_topics(timeout=_CALL_SECONDS)
            except client_error() as failure:
                self._admin.poll(0)
                self._watch.raise_refusal("logging in")
                broker_wait.check(self._watch.last_error(error_in(failure)))
            else:
                break
        self.cluster_id = metadata.cluster_id
        self.brokers = tuple(sorted(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()))
        return CheckResult(True, f"{_as_whom(self._settings)}; {len(metadata.topics)} topics are visible to this user")

    def reach_others(self) -> list[AddressProbe]:
        """Probes the brokers that name themselves otherwise than `bootstrap.servers` does."""
        named = {part.strip() for part in self._settings.bootstrap_servers.split(",")}
        found = probe_addresses([broker for broker in self.brokers if broker not in named], self._timeout_seconds)
        remedy = "allow this machine to reach the advertised.listeners of this broker, or correct them at the broker"
        return [
            AddressProbe(each.address, each.problem, remedy if each.problem else "", each.seconds) for each in found
        ]

    def create_topic(self) -> CheckResult:
        """Makes a topic; where one is named, only checks whether one could be made."""
        from confluent_kafka.admin import NewTopic

        name = f"contexture.connection-test.{uuid.uuid4().hex}"
        # The record then has the time of the broker's clock.
        config = {"message.timestamp.type": "LogAppendTime"}
        if self._record_bytes is not None:
            config["max.message.bytes"] = str(self._record_bytes + _ROOM_OF_TOPIC_BYTES)
        only_asked = self._given_topic is not None
        answers = self._admin.create_topics(
            [NewTopic(name, 1, -1, config=config)], validate_only=only_asked, request_timeout=self._timeout_seconds
        )
        try:
            answers[name].result()
        except client_error() as failure:
            refused = translate_error(error_in(failure), "creating a topic", needs="CREATE")
            return CheckResult(
                False, refused.message, f"{refused.next_step}; --topic NAME checks the rest on an existing topic"
            )
        if not only_asked:
            self._topic = name
            self._topics().await_usable({name: 1}, self._timeout_seconds)
        return CheckResult(True, "this user may create topics")

    def transact(self) -> CheckResult:
        """Sends a record in a transaction, commits it, and reads it back as a read-committed reader does."""
        if self._topic is None:
            self._records.initialise()
            return CheckResult(
                None, "this user may use transactional ids; no topic to send to", "name one with --topic"
            )
        if self._given_topic is not None and self._given_topic not in self._topics().listed(self._given_topic):
            return CheckResult(
                False, f"topic {self._topic} does not exist, or this user may not see it", "name an existing topic"
            )
        self._sent = self._records.send(self._topic, b"contexture")
        return CheckResult(True, f"committed and read back in {self._topic}, transactional id {self._transactional_id}")

    def send_largest(self) -> CheckResult:
        """Sends a record of the largest size that the connection allows, of bytes that no codec makes smaller."""
        if self._sent is None or self._topic is None:
            return CheckResult(None, "not tried: no transaction was committed")
        largest = self._records.largest_bytes
        limit = self._topics().configs([self._topic])[self._topic].get("max.message.bytes", "unknown")
        whose = "of the connection is" if self._record_bytes is None else "of this test is"
        said = f"message.max.bytes {whose} {largest}, max.message.bytes of the topic {limit}"
        request = self._topics().lowest_of_brokers("socket.request.max.bytes")
        if request is not None and request < largest:
            return CheckResult(
                False,
                f"{said}, and the brokers accept no request above {request} (socket.request.max.bytes)",
                "raise socket.request.max.bytes of the brokers, or lower message.max.bytes",
            )
        value = os.urandom(self._records.largest_value_bytes)
        try:
            arrived = self._records.send(self._topic, value).record.value
        except RejectedError:
            return CheckResult(
                False,
                f"the brokers refuse a record of the largest size: {said}",
                "raise max.message.bytes in topics.config of the publications (or message.max.bytes of the brokers), "
                "or lower message.max.bytes",
            )
        if arrived != value:
            return CheckResult(False, "the record came back with other bytes", "check the proxies before the brokers")
        return CheckResult(True, f"a record of that size passes: {said}")

    def compare_clocks(self) -> CheckResult:
        """Compares the time that the broker wrote into the record with the time it was sent."""
        return clock_verdict(self._sent)

    def remove_topic(self) -> CheckResult:
        assert self._topic is not None  # asked only then
        answers = self._admin.delete_topics([self._topic], request_timeout=self._timeout_seconds)
        try:
            answers[self._topic].result()
        except client_error() as failure:
            return CheckResult(None, f"topic {self._topic} stays ({error_in(failure).name()})", "remove it by hand")
        return CheckResult(True, f"topic {self._topic} is removed")

    def _topics(self) -> TopicAdmin:
        return TopicAdmin(self._settings, BrokerWait(self._timeout_seconds))


def clock_verdict(sent: SentTestRecord | None) -> CheckResult:
    """Returns what a record that came back says of the broker's clock; None: there is no record."""
    if sent is None:
        return CheckResult(None, "not tried: no transaction was committed")
    if not sent.record.is_brokers_time:
        return CheckResult(None, "not tried: the topic keeps the times of senders", "repeat the test without --topic")
    at = sent.record.timestamp_ms / 1000
    apart = max(sent.before - at, at - sent.after, 0.0)
    if apart <= _CLOCK_SECONDS:
        known = max(apart, sent.after - sent.before)
        return CheckResult(True, f"the broker's clock is within {known:.1f} s of this machine's")
    way = "behind" if at < sent.before else "ahead of"
    return CheckResult(
        False,
        f"the broker's clock is {apart:.0f} s {way} this machine's",
        "synchronise both with a time server (NTP): certificates, tokens and retention depend on the clock",
    )


def _as_whom(settings: ClientSettings) -> str:
    options = settings.options
    protocol = str(options.get("security.protocol", "PLAINTEXT")).upper()
    mechanism = options.get("sasl.mechanism")
    user = options.get("sasl.username") or options.get("sasl.oauthbearer.client.id")
    who = f"as {user} " if user else ""
    return f"logged in {who}by {mechanism} over {protocol}" if mechanism else f"connected over {protocol}"


AUTHENTICATION = "authentication"


@dataclass(frozen=True, slots=True)
class Check:
    """One step of the test.

    Attributes:
        name: `server host:port` for each bootstrap server, `authentication`, `broker host:port` for each broker that
            names itself otherwise, `create topics`, `transactions`, `message size`, `clock`.
        passed: None when it could not be checked, for a reason that the detail shows.
        detail: what was found.
        seconds: how long it took.
        remedy: what to do; empty when there is nothing to do.
    """

    name: str
    passed: bool | None
    detail: str
    seconds: float
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """What a test of a connection found.

    Attributes:
        identity: which cluster as whom, without secrets.
        cluster_id: the cluster's own id; None when it let no one in.
        brokers: `host:port` of each broker, as they name themselves.
        checks: the steps.
    """

    identity: str
    cluster_id: str | None
    brokers: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed of what Contexture needs."""
        return self.reached and not any(check.passed is False for check in self.checks)

    @property
    def reached(self) -> bool:
        """Whether any of the bootstrap servers answered."""
        return any(check.passed for check in self.checks if check.name.startswith("server "))


def test_connection(
    settings: ClientSettings,
    *,
    timeout_seconds: float = 15.0,  # noqa: PT028 - a function for users, not one of pytest's
    transactional_id_prefix: str = "tx",  # noqa: PT028 - likewise
    topic: str | None = None,  # noqa: PT028 - likewise
    record_bytes: int | None = None,  # noqa: PT028 - likewise
    on_step: Callable[[Check], None] = lambda check: None,  # noqa: PT028 - likewise
) -> ConnectionReport:
    """Checks what a publication needs, on records of its own in a topic of its own, which is removed again.

    Every bootstrap server, the login, making topics, a transaction that is read back as committed, a record of the
    connection's largest size that no codec makes smaller, and the brokers' clock.

    Args:
        settings: the connection.
        timeout_seconds: for each step; the largest record gets a second more for each megabyte.
        transactional_id_prefix: of the publications that will use it.
        topic: an existing topic to send the records to, for users who may not make one. They stay in it.
        record_bytes: key and value of the largest record, whatever the connection's own limit is; the topic that is
            made has room for it. None: the connection's limit.
        on_step: receives each step as soon as it is done.

    Raises:
        KafkaConfigurationError: the client refuses the settings.
    """
    trial = ConnectionCheck(
        settings,
        timeout_seconds,
        f"{transactional_id_prefix}.connection-test.{uuid.uuid4().hex}",
        topic,
        record_bytes,
    )
    checks = []
    for check in _tried(trial, settings.bootstrap_servers, timeout_seconds):
        on_step(check)
        checks.append(check)
    return ConnectionReport(settings.identity(), trial.cluster_id, trial.brokers, tuple(checks))


test_connection.__test__ = False  # type: ignore[attr-defined]


def _tried(trial: ConnectionCheck, bootstrap_servers: str, timeout_seconds: float) -> Iterator[Check]:
    servers = [_of_address("server", found) for found in probe_addresses(bootstrap_servers, timeout_seconds)]
    yield from servers
    reached = any(check.passed for check in servers)
    login = _checked(AUTHENTICATION, trial.log_in) if reached else _untried(AUTHENTICATION, "no server was reached")
    yield login
    if login.passed:
        yield from (_of_address("broker", found) for found in trial.reach_others())
    steps: dict[str, Callable[[], CheckResult]] = {
        "create topics": trial.create_topic,
        "transactions": trial.transact,
        "message size": trial.send_largest,
        "clock": trial.compare_clocks,
    }
    for name, step in steps.items():
        yield _checked(name, step) if login.passed else _untried(name, "there was no login")
    if trial.topic_is_ours:
        yield _checked("clean up", trial.remove_topic)


def _checked(name: str, step: Callable[[], CheckResult]) -> Check:
    started = time.monotonic()
    try:
        verdict = step()
    except SendAgainError as failure:
        verdict = CheckResult(False, failure.error.message, failure.error.next_step)
    except ContextureError as failure:
        verdict = CheckResult(False, failure.message, failure.next_step)
    return Check(name, verdict.passed, verdict.detail, time.monotonic() - started, verdict.remedy)


def _untried(name: str, why: str) -> Check:
    return Check(name, None, f"not tried: {why}", 0.0)


def _of_address(kind: str, found: AddressProbe) -> Check:
    return Check(
        f"{kind} {found.address}", found.problem == "", found.problem or "answers", found.seconds, found.remedy
    )
