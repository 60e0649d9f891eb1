"""Testing a connection by its type, step by step."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from contexture.cli import connections
from contexture.cli.trial_outcome import Outcome, Step, Told, untold
from contexture.errors import ConfigurationError, ContextureError, RetriableError
from contexture.ngsi.connection_fields import ConnectionFields

if TYPE_CHECKING:
    from datetime import datetime

    from contexture.ngsi import BrokerConnection
    from contexture.ngsi.entity import EntityForm
    from contexture.ngsi.linked_data.flavour import Flavour

_KINDS = ("kafka", "http", "https")


def try_by_kind(
    connection_id: str,
    *,
    service: str,
    timeout_seconds: float,
    media_type: str = "",
    topic: str | None = None,
) -> Outcome:
    """Tests a connection of the environment.

    Args:
        connection_id: of the connection.
        service: of a context broker.
        timeout_seconds: for each step.
        media_type: of a structure registry: the format to try; the connection is taken for a registry where it is
            given.
        topic: of Kafka: an existing topic that takes the test's records.

    Raises:
        ConfigurationError: it isn't there, or it holds what can't be used.
    """
    fields = connections.read(connection_id)
    if fields is None:
        raise ConfigurationError(
            f"there is no connection {connection_id!r} in the environment",
            next_step=f"set {connections.variable_of(connection_id)} as Airflow has it "
            "(what is kept in Airflow's database is not seen here)",
        )
    return try_fields(
        connection_id, fields, service=service, timeout_seconds=timeout_seconds, media_type=media_type, topic=topic
    )


def try_fields(
    connection_id: str,
    fields: ConnectionFields,
    *,
    service: str,
    timeout_seconds: float,
    media_type: str = "",
    topic: str | None = None,
    told: Told = untold,
) -> Outcome:
    """Tests a connection by its fields, wherever they were kept; `told` gets each step as soon as it is done.

    Args and errors are those of `try_by_kind`.
    """
    if fields.kind not in _KINDS:
        raise ConfigurationError(
            f"connection {connection_id!r} has the type {fields.kind!r}",
            next_step=f"give it one of the types {', '.join(_KINDS)}",
        )
    if fields.kind == "kafka":
        from contexture.cli.kafka_connections import try_kafka

        return try_kafka(connection_id, fields, topic, timeout_seconds, told)
    from contexture.cli import registry_trial

    registry = registry_trial.RegistryTrial(connection_id, fields, media_type, timeout_seconds, told)
    if media_type or registry.is_said or registry.is_fusion():
        return registry.outcome()
    outcome = _try_broker(connection_id, fields, service, timeout_seconds)
    for step in outcome.steps:
        told(step)
    if outcome.passed or outcome.unreachable or service:
        return outcome
    # What answers, but not as a context broker, may be a registry that does not say so.
    other = registry.outcome()
    return other if other.steps[0].passed else outcome


def _try_broker(connection_id: str, fields: ConnectionFields, service: str, timeout_seconds: float) -> Outcome:
    broker = replace(connections.context_broker(connection_id, fields), timeout_seconds=timeout_seconds)
    started, unreachable = time.monotonic(), False
    try:
        flavour, api, clock = _asked(broker, service)
        detail, passed = f"its database answers; its clock says {clock.isoformat()}", True
    except ContextureError as error:
        detail, passed, unreachable = str(error), False, isinstance(error, RetriableError)
    steps = [Step(name="probe", passed=passed, detail=detail, seconds=time.monotonic() - started)]
    if passed:
        steps.append(Step(name="flavour", passed=True, detail=f"{flavour}, asked by source.api {api}", seconds=0.0))
    return Outcome(
        connection=connection_id, kind=fields.kind, target=broker.address, unreachable=unreachable, steps=tuple(steps)
    )


def _asked(broker: BrokerConnection, service: str) -> tuple[Flavour, EntityForm, datetime]:
    """Which broker it is, the interface it answered by, and its clock."""
    from contexture.ngsi import Dialect, open_broker
    from contexture.ngsi.flavour import detect
    from contexture.ngsi.linked_data.flavour import SPEAKS_LINKED_DATA
    from contexture.ngsi.transport import Patience

    patience = Patience(attempts=1, first_wait_seconds=0.1, longest_wait_seconds=0.1)
    flavour = detect(broker, patience=patience)

    def ask(api: EntityForm) -> tuple[Flavour, EntityForm, datetime]:
        with open_broker(broker, service, Dialect(api, flavour), patience=patience) as client:
            return flavour, api, client.probe()

    if flavour in SPEAKS_LINKED_DATA:
        return ask("ngsi-ld")
    try:
        return ask("ngsiv2")
    except ConfigurationError:
        if flavour != "unknown":
            raise
    # Whoever hides which broker it is may speak either.
    return ask("ngsi-ld")
