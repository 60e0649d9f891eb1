"""Testing a Kafka connection, step by step, with the time each step took."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from contexture.errors import ContextureError
from contexture.kafka.clients import admin, client_error, error_in, transactional_producer
from contexture.kafka.error_table import translated
from contexture.kafka.patience import Patience
from contexture.kafka.session import Session
from contexture.kafka.settings import ClientSettings
from contexture.kafka.watch import ClientWatch

_CALL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Check:
    """One step of the test.

    Attributes:
        name: `reach`, `create topics` or `transactions`.
        passed: None when it could not be tried because an earlier one failed.
        detail: what was found, or what to do.
        seconds: how long it took.
    """

    name: str
    passed: bool | None
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ConnectionReport:
    """What a test of a connection found.

    Attributes:
        identity: which cluster as whom, without secrets.
        cluster_id: the cluster's own id; None when it was not reached.
        brokers: `host:port` of each broker, as they name themselves.
        checks: the steps.
    """

    identity: str
    cluster_id: str | None
    brokers: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that Contexture needs was seen to work."""
        return all(check.passed for check in self.checks)


def test_connection(
    settings: ClientSettings,
    *,
    timeout_seconds: float = 15.0,  # noqa: PT028 - a function for users, not one of pytest's
    transactional_id_prefix: str = "tx",  # noqa: PT028
) -> ConnectionReport:
    """Tries what a publication needs: reaching the brokers as this user, making topics, sending in transactions.

    Leaves nothing behind: topic creation is only validated, and the transactional id used is a new one, on which no
    transaction is begun.

    Args:
        settings: the connection.
        timeout_seconds: for each step.
        transactional_id_prefix: of the publications that will use it.

    Raises:
        KafkaConfigurationError: the client refuses the settings.
    """
    found = _Cluster(settings, timeout_seconds)
    steps: list[tuple[str, Callable[[], str]]] = [
        ("reach", found.reach),
        ("create topics", found.create_topics),
        ("transactions", lambda: found.transact(f"{transactional_id_prefix}.connection-test.{uuid.uuid4().hex}")),
    ]
    checks: list[Check] = []
    for name, step in steps:
        reached = not checks or bool(checks[0].passed)
        checks.append(_checked(name, step) if reached else Check(name, None, "not tried: not reached", 0.0))
    return ConnectionReport(settings.identity(), found.cluster_id, found.brokers, tuple(checks))


test_connection.__test__ = False  # type: ignore[attr-defined]


class _Cluster:
    def __init__(self, settings: ClientSettings, timeout_seconds: float) -> None:
        self._settings = settings
        self._timeout_seconds = timeout_seconds
        self._watch = ClientWatch()
        self._admin = admin(settings, self._watch)
        self.cluster_id: str | None = None
        self.brokers: tuple[str, ...] = ()

    def reach(self) -> str:
        patience = Patience(self._timeout_seconds)
        while True:
            try:
                metadata = self._admin.list_topics(timeout=_CALL_SECONDS)
            except client_error() as failure:
                self._admin.poll(0)
                self._watch.raise_refusal("reaching the brokers")
                patience.waited(self._watch.last_words(error_in(failure)))
            else:
                break
        self.cluster_id = metadata.cluster_id
        self.brokers = tuple(sorted(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()))
        return f"{len(self.brokers)} brokers, {len(metadata.topics)} topics may be seen"

    def create_topics(self) -> str:
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        name = f"contexture.connection-test.{uuid.uuid4().hex}"
        answers = self._admin.create_topics(
            [NewTopic(name, 1, -1)], validate_only=True, request_timeout=self._timeout_seconds
        )
        try:
            answers[name].result()
        except client_error() as failure:
            raise translated(error_in(failure), "making a topic (validated only)") from failure
        return "this user may make topics"

    def transact(self, transactional_id: str) -> str:
        watch = ClientWatch()
        session = Session(
            transactional_producer(self._settings, transactional_id, watch),
            watch,
            Patience(self._timeout_seconds),
            ledger_topic="contexture.connection-test",
            transaction_timeout_seconds=self._settings.transaction_timeout_seconds,
        )
        try:
            session.initialise()
        finally:
            session.close()
        return f"this user may use transactional ids such as {transactional_id}"


def _checked(name: str, step: Callable[[], str]) -> Check:
    started = time.monotonic()
    try:
        detail, passed = step(), True
    except ContextureError as failure:
        detail, passed = str(failure), False
    return Check(name, passed, detail, time.monotonic() - started)
