"""Testing a connection by its type, step by step."""

from __future__ import annotations

from contexture.cli import connections
from contexture.cli.broker_trial import BrokerTrial
from contexture.cli.registry_trial import RegistryTrial
from contexture.cli.source_kinds import source_kind
from contexture.cli.trial_outcome import Outcome, Step, Told, untold
from contexture.errors import ConfigurationError
from contexture.publications.connection_types import TYPES, Target, leads_to
from contexture.publications.source import SourceKind
from contexture.sources.http.connection import ConnectionFields


def try_by_kind(
    connection_id: str,
    *,
    service: str,
    timeout_seconds: float,
    media_type: str = "",
    topic: str | None = None,
    transactional_id_prefix: str | None = None,
    kind: SourceKind | None = None,
) -> Outcome:
    """Tests a connection of the environment.

    Args:
        connection_id: of the connection.
        service: of a context broker.
        timeout_seconds: for each step.
        media_type: of a structure registry: the format to try.
        topic: of Kafka: an existing topic that takes the test's records.
        transactional_id_prefix: of Kafka; None: as the publications say that use the connection.
        kind: of a source; None: what its type, the other arguments, the connection and the publications say, else what
            answers.

    Raises:
        ConfigurationError: it isn't there, or it holds what can't be used.
    """
    fields = connections.read(connection_id)
    if fields is None:
        raise ConfigurationError(
            f"there is no connection {connection_id!r} in the environment",
            next_step=f"set {connections.variable_of(connection_id)} as Airflow has it; one that is kept in Airflow's "
            "database or a secrets backend can be tested on the page Contexture in Airflow",
        )
    return try_fields(
        connection_id,
        fields,
        service=service,
        timeout_seconds=timeout_seconds,
        media_type=media_type,
        topic=topic,
        transactional_id_prefix=transactional_id_prefix,
        kind=kind,
    )


def try_fields(
    connection_id: str,
    fields: ConnectionFields,
    *,
    service: str,
    timeout_seconds: float,
    media_type: str = "",
    topic: str | None = None,
    transactional_id_prefix: str | None = None,
    kind: SourceKind | None = None,
    told: Told = untold,
) -> Outcome:
    """Tests a connection by its fields, wherever they were kept; `told` gets each step as soon as it is done.

    Args and errors are those of `try_by_kind`.
    """
    target = _target(connection_id, fields)
    if target == "kafka":
        from contexture.cli.kafka_connections import try_kafka

        return try_kafka(
            connection_id, fields, topic, timeout_seconds, told, transactional_id_prefix=transactional_id_prefix
        )
    registry = RegistryTrial(connection_id, fields, media_type, timeout_seconds, told)
    broker = BrokerTrial(connection_id, fields, service, timeout_seconds)
    said = kind or (target if target != "source" else None)
    match said or source_kind(connection_id, registry, service=service, media_type=media_type):
        case "sdmx":
            return registry.outcome()
        case "ngsi":
            return _telling(broker.outcome(), told)
    return _whatever_answers(registry, broker, told)


def _target(connection_id: str, fields: ConnectionFields) -> Target:
    target = leads_to(fields.kind)
    if target is None:
        raise ConfigurationError(
            f"connection {connection_id!r} has the type {fields.kind!r}",
            next_step=f"give it one of the types {', '.join(TYPES)}",
        )
    return target


def _whatever_answers(registry: RegistryTrial, broker: BrokerTrial, told: Told) -> Outcome:
    """The test of a source of which nobody has said what it is."""
    if registry.is_fusion():
        return registry.outcome()
    outcome = broker.outcome()
    if broker.silence is not None:
        return _telling(_silent(outcome, broker.silence), told)
    if outcome.passed or outcome.unreachable:
        return _telling(outcome, told)
    # What answers, but not as a context broker, may be a registry that does not say so.
    other = registry.outcome()
    return other if other.steps[0].passed else _telling(outcome, told)


def _telling(outcome: Outcome, told: Told) -> Outcome:
    for step in outcome.steps:
        told(step)
    return outcome


def _silent(outcome: Outcome, reason: str) -> Outcome:
    """Nobody knows what should be there, so that it isn't called one or the other."""
    step = Step(
        name="reach",
        passed=False,
        detail=f"nothing answers at {outcome.target} ({reason})",
        seconds=sum(each.seconds for each in outcome.steps),
        remedy="start the context broker or the structure registry there, or correct the host and port of its "
        "connection; --kind ngsi or --kind sdmx says which of both it is",
    )
    return outcome.model_copy(update={"steps": (step,)})
