"""The steps of a connection's test that speak Kafka."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass
from typing import Final

from contexture.errors import RejectedError
from contexture.kafka.addresses import Reached, reach
from contexture.kafka.clients import admin, client_error, error_in
from contexture.kafka.error_table import translated
from contexture.kafka.patience import Patience
from contexture.kafka.settings import ClientSettings
from contexture.kafka.topic_admin import TopicAdmin
from contexture.kafka.trial_records import Sent, TrialRecords
from contexture.kafka.watch import ClientWatch

_CALL_SECONDS: Final = 1.0
# Tokens and event times bear less than this.
_CLOCK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a step went: passed (None: it could not be tried), what was found, and what to do."""

    passed: bool | None
    detail: str
    remedy: str = ""


class Trial:
    """One test of a connection, in order: `log_in` first.

    Args:
        settings: the connection.
        timeout_seconds: for each step.
        transactional_id: a new one.
        topic: an existing topic to use; a new one is made when None.
    """

    def __init__(
        self, settings: ClientSettings, timeout_seconds: float, transactional_id: str, topic: str | None
    ) -> None:
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._transactional_id = transactional_id
        self._given_topic = self._topic = topic
        self._records = TrialRecords(settings, transactional_id, timeout_seconds)
        self._watch = ClientWatch()
        self._admin = admin(settings, self._watch)
        self._sent: Sent | None = None
        self.cluster_id: str | None = None
        self.brokers: tuple[str, ...] = ()

    @property
    def topic_is_ours(self) -> bool:
        """Whether a topic was made that has to be removed."""
        return self._topic is not None and self._topic != self._given_topic

    def log_in(self) -> Verdict:
        """Asks for the cluster's metadata, which only users get."""
        patience = Patience(self._timeout_seconds)
        while True:
            try:
                metadata = self._admin.list_topics(timeout=_CALL_SECONDS)
            except client_error() as failure:
                self._admin.poll(0)
                self._watch.raise_refusal("logging in")
                patience.waited(self._watch.last_words(error_in(failure)))
            else:
                break
        self.cluster_id = metadata.cluster_id
        self.brokers = tuple(sorted(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()))
        return Verdict(True, f"{_as_whom(self._settings)}; {len(metadata.topics)} topics may be seen")

    def reach_others(self) -> list[Reached]:
        """Tries the brokers that name themselves otherwise than `bootstrap.servers` does."""
        named = {part.strip() for part in self._settings.bootstrap_servers.split(",")}
        found = reach([broker for broker in self.brokers if broker not in named], self._timeout_seconds)
        remedy = "let this machine reach the advertised.listeners of this broker, or correct them at the broker"
        return [Reached(each.address, each.problem, remedy if each.problem else "", each.seconds) for each in found]

    def create_topic(self) -> Verdict:
        """Makes a topic; where one is given, only asks whether one could be made."""
        from confluent_kafka.admin import NewTopic

        name = f"contexture.connection-test.{uuid.uuid4().hex}"
        # The broker's clock stands in the record then.
        config = {"message.timestamp.type": "LogAppendTime"}
        only_asked = self._given_topic is not None
        answers = self._admin.create_topics(
            [NewTopic(name, 1, -1, config=config)], validate_only=only_asked, request_timeout=self._timeout_seconds
        )
        try:
            answers[name].result()
        except client_error() as failure:
            told = translated(error_in(failure), "making a topic", needs="CREATE")
            return Verdict(False, told.message, f"{told.next_step}; --topic NAME tries the rest on an existing topic")
        if not only_asked:
            self._topic = name
            self._topics().await_usable({name: 1}, self._timeout_seconds)
        return Verdict(True, "this user may make topics")

    def transact(self) -> Verdict:
        """Sends a record in a transaction, commits it, and reads it back as a read-committed reader does."""
        if self._topic is None:
            self._records.initialise()
            return Verdict(None, "this user may use transactional ids; no topic to send to", "name one with --topic")
        if self._given_topic is not None and self._given_topic not in self._topics().listed(self._given_topic):
            return Verdict(False, f"topic {self._topic} is not there, or may not be seen", "name one that is there")
        self._sent = self._records.send(self._topic, b"contexture")
        return Verdict(True, f"committed and read back in {self._topic}, transactional id {self._transactional_id}")

    def send_largest(self) -> Verdict:
        """Sends a record of the largest size that the connection allows, of bytes that no codec makes smaller."""
        if self._sent is None or self._topic is None:
            return Verdict(None, "not tried: no transaction was committed")
        largest = self._records.largest_bytes
        limit = self._topics().configs([self._topic])[self._topic].get("max.message.bytes", "unknown")
        said = f"message.max.bytes of the connection is {largest}, max.message.bytes of the topic {limit}"
        request = self._topics().lowest_of_brokers("socket.request.max.bytes")
        if request is not None and request < largest:
            return Verdict(
                False,
                f"{said}, and the brokers take no request above {request} (socket.request.max.bytes)",
                "raise socket.request.max.bytes of the brokers, or lower message.max.bytes",
            )
        value = os.urandom(self._records.largest_value_bytes)
        try:
            arrived = self._records.send(self._topic, value).record.value
        except RejectedError:
            return Verdict(
                False,
                f"the brokers refuse a record of the largest size: {said}",
                "raise max.message.bytes in topics.config of the publications (or message.max.bytes of the brokers), "
                "or lower message.max.bytes",
            )
        if arrived != value:
            return Verdict(False, "the record came back with other bytes", "look at what stands before the brokers")
        return Verdict(True, f"a record of that size passes: {said}")

    def compare_clocks(self) -> Verdict:
        """Compares the time that the broker wrote into the record with the time it was sent."""
        return clock_verdict(self._sent)

    def remove_topic(self) -> Verdict:
        """Removes the topic that was made."""
        assert self._topic is not None  # asked only then
        answers = self._admin.delete_topics([self._topic], request_timeout=self._timeout_seconds)
        try:
            answers[self._topic].result()
        except client_error() as failure:
            return Verdict(None, f"topic {self._topic} stays ({error_in(failure).name()})", "remove it by hand")
        return Verdict(True, f"topic {self._topic} is removed")

    def _topics(self) -> TopicAdmin:
        return TopicAdmin(self._settings, Patience(self._timeout_seconds))


def clock_verdict(sent: Sent | None) -> Verdict:
    """What a record that came back says of the broker's clock; None: there is no record."""
    if sent is None:
        return Verdict(None, "not tried: no transaction was committed")
    if not sent.record.is_brokers_time:
        return Verdict(None, "not tried: the topic keeps the times of senders", "try without --topic")
    at = sent.record.timestamp_ms / 1000
    apart = max(sent.before - at, at - sent.after, 0.0)
    if apart <= _CLOCK_SECONDS:
        known = max(apart, sent.after - sent.before)
        return Verdict(True, f"the broker's clock is within {known:.1f} s of this machine's")
    way = "behind" if at < sent.before else "ahead of"
    return Verdict(
        False,
        f"the broker's clock is {apart:.0f} s {way} this machine's",
        "let both follow a time server (NTP): certificates, tokens and retention go by the clock",
    )


def _as_whom(settings: ClientSettings) -> str:
    options = settings.options
    protocol = str(options.get("security.protocol", "PLAINTEXT")).upper()
    mechanism = options.get("sasl.mechanism")
    user = options.get("sasl.username") or options.get("sasl.oauthbearer.client.id")
    who = f"as {user} " if user else ""
    return f"let in {who}by {mechanism} over {protocol}" if mechanism else f"let in over {protocol}"
