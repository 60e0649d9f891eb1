"""Waiting until embedded brokers really serve, and giving them users."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from contexture.errors import ConfigurationError, RetriableError
from contexture_sandbox.node import Node
from contexture_sandbox.ports import LOOPBACK, listening

_ASK_SECONDS = 2.0
_PAUSE_SECONDS = 0.05
_SCRAM_ITERATIONS = 4096
_SCRAM = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}

# A client writes every refused connection to standard error, and here refusals are expected.
_SILENT = logging.getLogger(__name__)
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


def await_brokers(nodes: Sequence[Node], timeout_seconds: float) -> None:
    """Waits until every node answers a metadata request and knows all the others.

    Raises:
        ConfigurationError: a node died; the end of its log is in the message.
        RetriableError: the time is over.
    """
    deadline = time.monotonic() + timeout_seconds
    for node in nodes:
        while not listening(node.ports.internal):
            _check(node, deadline)
        while _brokers_seen_by(node) < len(nodes):
            _check(node, deadline)


def await_login(nodes: Sequence[Node], settings: Mapping[str, str], timeout_seconds: float, *, cluster: str) -> None:
    """Waits until a client with these settings is let in.

    Raises:
        ConfigurationError: a node died, or another cluster than the one of this id answers there.
        RetriableError: the time is over.
    """
    deadline = time.monotonic() + timeout_seconds
    while (found := _cluster(settings)) != cluster:
        if found is not None:
            raise ConfigurationError(
                f"Address already in use: another Kafka answers at {settings['bootstrap.servers']}",
                next_step="end it, or choose other ports",
            )
        for node in nodes:
            _check(node, deadline)


def add_users(bootstrap_servers: str, users: Mapping[str, str], mechanisms: Sequence[str]) -> None:
    """Gives the cluster these users, with passwords for those of the mechanisms that are SCRAM."""
    admin = _admin({"bootstrap.servers": bootstrap_servers})
    for mechanism in mechanisms:
        if mechanism not in _SCRAM:
            continue
        kind = ScramCredentialInfo(_SCRAM[mechanism], _SCRAM_ITERATIONS)
        changes: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, kind, password.encode()) for name, password in users.items()
        ]
        for done in admin.alter_user_scram_credentials(changes).values():
            done.result(timeout=120)


def _check(node: Node, deadline: float) -> None:
    process = node.process
    if process is None or not process.running:
        code = process.exit_code if process else None
        raise ConfigurationError(
            f"the embedded Kafka broker {node.number} ended with exit code {code}:\n{node.reasons()}",
            next_step="correct what these lines of its log say; with a data folder given, the whole log stays there",
        )
    if time.monotonic() > deadline:
        raise RetriableError(
            f"the embedded Kafka broker {node.number} was not ready in time; its last lines:\n{node.log_tail()}",
            next_step="start it again when the machine is less busy, or allow it more time",
        )
    time.sleep(_PAUSE_SECONDS)


def _brokers_seen_by(node: Node) -> int:
    return _brokers({"bootstrap.servers": f"{LOOPBACK}:{node.ports.internal}"})


def _brokers(settings: Mapping[str, str]) -> int:
    try:
        return len(_admin(settings).list_topics(timeout=_ASK_SECONDS).brokers)
    except KafkaException:
        return 0


def _cluster(settings: Mapping[str, str]) -> str | None:
    """The id of the cluster that answers; None when none does."""
    try:
        return str(_admin(settings).list_topics(timeout=_ASK_SECONDS).cluster_id)
    except KafkaException:
        return None


def _admin(settings: Mapping[str, str]) -> AdminClient:
    # Metadata can name brokers that are not up yet; this client must not give up on them quickly.
    return AdminClient({**settings, "reconnect.backoff.max.ms": "200"}, logger=_SILENT)
