"""Testing a Kafka connection, step by step, each with its time, its verdict and what to do."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from contexture.errors import ContextureError
from contexture.kafka.addresses import Reached, reach
from contexture.kafka.connection_trial import Trial, Verdict
from contexture.kafka.failures import SendAgainError
from contexture.kafka.settings import ClientSettings

AUTHENTICATION = "authentication"


@dataclass(frozen=True, slots=True)
class Check:
    """One step of the test.

    Attributes:
        name: `server host:port` for each bootstrap server, `authentication`, `broker host:port` for each broker that
            names itself otherwise, `create topics`, `transactions`, `message size`, `clock`.
        passed: None when it could not be tried, for a reason that the detail tells.
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
        cluster_id: the cluster's own id; None when it let nobody in.
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
    told: Callable[[Check], None] = lambda check: None,  # noqa: PT028 - likewise
) -> ConnectionReport:
    """Tries what a publication needs, on records of its own in a topic of its own, which is removed again.

    Every bootstrap server, the login, making topics, a transaction that is read back as committed, a record of the
    connection's largest size that no codec makes smaller, and the brokers' clock.

    Args:
        settings: the connection.
        timeout_seconds: for each step; the largest record gets a second more for each megabyte.
        transactional_id_prefix: of the publications that will use it.
        topic: an existing topic to send the records to, for users who may not make one. They stay in it.
        told: gets each step as soon as it is done.

    Raises:
        KafkaConfigurationError: the client refuses the settings.
    """
    trial = Trial(settings, timeout_seconds, f"{transactional_id_prefix}.connection-test.{uuid.uuid4().hex}", topic)
    checks = []
    for check in _tried(trial, settings.bootstrap_servers, timeout_seconds):
        told(check)
        checks.append(check)
    return ConnectionReport(settings.identity(), trial.cluster_id, trial.brokers, tuple(checks))


test_connection.__test__ = False  # type: ignore[attr-defined]


def _tried(trial: Trial, bootstrap_servers: str, timeout_seconds: float) -> Iterator[Check]:
    servers = [_of_address("server", found) for found in reach(bootstrap_servers, timeout_seconds)]
    yield from servers
    reached = any(check.passed for check in servers)
    login = _checked(AUTHENTICATION, trial.log_in) if reached else _untried(AUTHENTICATION, "no server is reached")
    yield login
    if login.passed:
        yield from (_of_address("broker", found) for found in trial.reach_others())
    steps: dict[str, Callable[[], Verdict]] = {
        "create topics": trial.create_topic,
        "transactions": trial.transact,
        "message size": trial.send_largest,
        "clock": trial.compare_clocks,
    }
    for name, step in steps.items():
        yield _checked(name, step) if login.passed else _untried(name, "nobody is logged in")
    if trial.topic_is_ours:
        yield _checked("clean up", trial.remove_topic)


def _checked(name: str, step: Callable[[], Verdict]) -> Check:
    started = time.monotonic()
    try:
        verdict = step()
    except SendAgainError as failure:
        verdict = Verdict(False, failure.error.message, failure.error.next_step)
    except ContextureError as failure:
        verdict = Verdict(False, failure.message, failure.next_step)
    return Check(name, verdict.passed, verdict.detail, time.monotonic() - started, verdict.remedy)


def _untried(name: str, why: str) -> Check:
    return Check(name, None, f"not tried: {why}", 0.0)


def _of_address(kind: str, found: Reached) -> Check:
    return Check(
        f"{kind} {found.address}", found.problem == "", found.problem or "answers", found.seconds, found.remedy
    )
