"""Checking connections step by step: Kafka, context brokers, structure registries; their kinds and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from contexture.errors import ConfigurationError
from contexture.operations import environment
from contexture.operations.actions.source_check import (
    BrokerCheck,
    CheckOutcome,
    CheckStep,
    RegistryCheck,
    StepReport,
    ignore_step,
)
from contexture.operations.environment import known_publications
from contexture.publications import Publication
from contexture.publications.source import SourceKind
from contexture.sources.http.connection import ConnectionFields

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings
    from contexture.kafka.connection_check import Check


def source_kind(
    connection_id: str,
    registry: RegistryCheck,
    *,
    service: str,
    media_type: str,
    publications: Sequence[Publication] | None = None,
) -> SourceKind | None:
    """The kind of the source behind a connection; None where it is not configured.

    Args:
        connection_id: of the connection.
        registry: knows whether the connection itself says that it leads to a registry.
        service: given for a context broker alone.
        media_type: given for a structure registry alone.
        publications: those that may use it; None: those of the environment.
    """
    if media_type or registry.is_said:
        return "sdmx"
    if service:
        return "ngsi"
    return _of_publications(connection_id, known_publications() if publications is None else publications)


def _of_publications(connection_id: str, publications: Sequence[Publication]) -> SourceKind | None:
    """What the publications read that use the connection, if they agree."""
    sources = [each.source for each in publications]
    kinds = {source.kind for source in sources if source.connection == connection_id}
    return kinds.pop() if len(kinds) == 1 else None


Target = Literal["kafka", "ngsi", "sdmx", "source"]
"""A Kafka cluster, a context broker, a structure registry, or one of the latter two without saying which."""

_TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "kafka": "kafka",
        "http": "source",
        "https": "source",
        "contexture_kafka": "kafka",
        "contexture_ngsi": "ngsi",
        "contexture_sdmx": "sdmx",
    }
)
TYPES: Final = tuple(_TARGETS)


def connection_target(connection_type: str) -> Target | None:
    """What a connection of that type leads to; None where it is nothing that Contexture uses."""
    # A URI has hyphens where the type has underscores.
    return _TARGETS.get(connection_type.replace("-", "_"))


def check_connection(
    connection_id: str,
    *,
    service: str,
    timeout_seconds: float,
    media_type: str = "",
    topic: str | None = None,
    record_bytes: int | None = None,
    transactional_id_prefix: str | None = None,
    kind: SourceKind | None = None,
) -> CheckOutcome:
    """Tests a connection of the environment.

    Args:
        connection_id: of the connection.
        service: of a context broker.
        timeout_seconds: for each step.
        media_type: of a structure registry: the format to try.
        topic: of Kafka: an existing topic that takes the test's records.
        record_bytes: of Kafka: size of the largest record; None: the connection's own limit.
        transactional_id_prefix: of Kafka; None: as the publications say that use the connection.
        kind: of a source; None: what its type, the other arguments, the connection and the publications say, else what
            answers.

    Raises:
        ConfigurationError: it isn't there, or it holds what can't be used.
    """
    fields = environment.read(connection_id)
    if fields is None:
        raise ConfigurationError(
            f"there is no connection {connection_id!r} in the environment",
            next_step=f"set {environment.variable_of(connection_id)} as Airflow has it; one that is stored in "
            "Airflow's database or a secrets backend can be tested on the page Contexture in Airflow",
        )
    return check_connection_fields(
        connection_id,
        fields,
        service=service,
        timeout_seconds=timeout_seconds,
        media_type=media_type,
        topic=topic,
        record_bytes=record_bytes,
        transactional_id_prefix=transactional_id_prefix,
        kind=kind,
    )


def check_connection_fields(
    connection_id: str,
    fields: ConnectionFields,
    *,
    service: str,
    timeout_seconds: float,
    media_type: str = "",
    topic: str | None = None,
    record_bytes: int | None = None,
    transactional_id_prefix: str | None = None,
    kind: SourceKind | None = None,
    on_step: StepReport = ignore_step,
) -> CheckOutcome:
    """Tests a connection by its fields, wherever they were kept; `on_step` receives each step as soon as it is done.

    Args and errors are those of `check_connection`.
    """
    target = _target(connection_id, fields)
    if target == "kafka":
        return try_kafka(
            connection_id,
            fields,
            topic,
            timeout_seconds,
            on_step,
            record_bytes=record_bytes,
            transactional_id_prefix=transactional_id_prefix,
        )
    registry = RegistryCheck(connection_id, fields, media_type, timeout_seconds, on_step)
    broker = BrokerCheck(connection_id, fields, service, timeout_seconds)
    said = kind or (target if target != "source" else None)
    match said or source_kind(connection_id, registry, service=service, media_type=media_type):
        case "sdmx":
            return registry.outcome()
        case "ngsi":
            return _report_steps(broker.outcome(), on_step)
    return _check_unknown_source(registry, broker, on_step)


def _target(connection_id: str, fields: ConnectionFields) -> Target:
    target = connection_target(fields.kind)
    if target is None:
        raise ConfigurationError(
            f"connection {connection_id!r} has the type {fields.kind!r}",
            next_step=f"give it one of the types {', '.join(TYPES)}",
        )
    return target


def _check_unknown_source(registry: RegistryCheck, broker: BrokerCheck, on_step: StepReport) -> CheckOutcome:
    """The test of a source whose kind is not configured."""
    if registry.is_fusion():
        return registry.outcome()
    outcome = broker.outcome()
    if broker.silence is not None:
        return _report_steps(_silent(outcome, broker.silence), on_step)
    if outcome.passed or outcome.unreachable:
        return _report_steps(outcome, on_step)
    # What answers, but not as a context broker, may be a registry that does not say so.
    other = registry.outcome()
    return other if other.steps[0].passed else _report_steps(outcome, on_step)


def _report_steps(outcome: CheckOutcome, on_step: StepReport) -> CheckOutcome:
    for step in outcome.steps:
        on_step(step)
    return outcome


def _silent(outcome: CheckOutcome, reason: str) -> CheckOutcome:
    """No one knows what should be there, so that it isn't called one or the other."""
    step = CheckStep(
        name="reach",
        passed=False,
        detail=f"nothing responds at {outcome.target} ({reason})",
        seconds=sum(each.seconds for each in outcome.steps),
        remedy="start the context broker or the structure registry there, or correct the host and port of its "
        "connection; --kind ngsi or --kind sdmx specifies which of the two it is",
    )
    return outcome.model_copy(update={"steps": (step,)})


def settings_of(connection_id: str) -> ClientSettings:
    """The settings of a Kafka connection of the environment.

    Raises:
        ConfigurationError: it isn't there, is of another type, or holds what can't be used.
    """
    fields = environment.read(connection_id)
    if fields is None or connection_target(fields.kind) != "kafka":
        raise ConfigurationError(
            f"there is no Kafka connection {connection_id!r} in the environment",
            next_step=f"set {environment.variable_of(connection_id)} as Airflow has it, its conn_type kafka (what is "
            "stored in Airflow's database or a secrets backend is not seen here)",
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
    on_step: StepReport = ignore_step,
    *,
    record_bytes: int | None = None,
    transactional_id_prefix: str | None = None,
) -> CheckOutcome:
    """Tries a connection, step by step; `on_step` receives each step as soon as it is done.

    Args:
        connection_id: of the connection.
        fields: as Airflow has them.
        topic: an existing one that takes the test's records.
        timeout_seconds: for each step.
        record_bytes: of the largest record; None: the connection's own limit.
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
        record_bytes=record_bytes,
        on_step=lambda check: on_step(_step(check)),
    )
    cluster = f", cluster {report.cluster_id}" if report.cluster_id else ""
    return CheckOutcome(
        connection=connection_id,
        kind=fields.kind,
        target=f"{report.identity}{cluster}",
        unreachable=not report.reached,
        steps=tuple(_step(check) for check in report.checks),
    )


def _prefix(connection_id: str) -> str:
    """What the transactional ids of its publications begin with; of several prefixes the first."""
    from contexture.operations.environment import known_publications
    from contexture.publications.delivery import Publish

    users = [each.publish for each in known_publications() if each.publish.connection == connection_id]
    return min((each.transactional_id_prefix for each in users), default=Publish().transactional_id_prefix)


def _step(check: Check) -> CheckStep:
    return CheckStep(
        name=check.name, passed=check.passed, detail=check.detail, seconds=check.seconds, remedy=check.remedy
    )
