"""Kafka connections of the environment: their settings, and trying them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.cli import connections
from contexture.cli.trial_outcome import Outcome, Step, Told, untold
from contexture.errors import ConfigurationError
from contexture.publications.connection_types import leads_to
from contexture.sources.http.connection import ConnectionFields

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings
    from contexture.kafka.connection_check import Check


def settings_of(connection_id: str) -> ClientSettings:
    """The settings of a Kafka connection of the environment.

    Raises:
        ConfigurationError: it isn't there, is of another type, or holds what can't be used.
    """
    fields = connections.read(connection_id)
    if fields is None or leads_to(fields.kind) != "kafka":
        raise ConfigurationError(
            f"there is no Kafka connection {connection_id!r} in the environment",
            next_step=f"set {connections.variable_of(connection_id)} as Airflow has it, its conn_type kafka (what is "
            "kept in Airflow's database or a secrets backend is not seen here)",
        )
    return settings(fields)


def settings(fields: ConnectionFields) -> ClientSettings:
    """The settings in the fields of a Kafka connection.

    Raises:
        ConfigurationError: they hold what can't be used.
    """
    from contexture.kafka import ClientSettings

    return ClientSettings.from_connection(
        fields.extra, host=fields.host, port=fields.port, login=fields.login, password=fields.password
    )


def try_kafka(
    connection_id: str,
    fields: ConnectionFields,
    topic: str | None,
    timeout_seconds: float,
    told: Told = untold,
    *,
    transactional_id_prefix: str | None = None,
) -> Outcome:
    """Tries a connection, step by step; `told` gets each step as soon as it is done.

    Args:
        connection_id: of the connection.
        fields: as Airflow has them.
        topic: an existing one that takes the test's records.
        timeout_seconds: for each step.
        told: gets each step.
        transactional_id_prefix: as publications have it; None: as those say that use the connection.

    Raises:
        ConfigurationError: it holds what can't be used.
    """
    from contexture.kafka import test_connection

    report = test_connection(
        settings(fields),
        timeout_seconds=timeout_seconds,
        transactional_id_prefix=transactional_id_prefix or _prefix(connection_id),
        topic=topic,
        told=lambda check: told(_step(check)),
    )
    cluster = f", cluster {report.cluster_id}" if report.cluster_id else ""
    return Outcome(
        connection=connection_id,
        kind=fields.kind,
        target=f"{report.identity}{cluster}",
        unreachable=not report.reached,
        steps=tuple(_step(check) for check in report.checks),
    )


def _prefix(connection_id: str) -> str:
    """What the transactional ids of its publications begin with; of several prefixes the first."""
    from contexture.cli.known_publications import known_publications
    from contexture.publications.delivery import Publish

    users = [each.publish for each in known_publications() if each.publish.connection == connection_id]
    return min((each.transactional_id_prefix for each in users), default=Publish().transactional_id_prefix)


def _step(check: Check) -> Step:
    return Step(name=check.name, passed=check.passed, detail=check.detail, seconds=check.seconds, remedy=check.remedy)
