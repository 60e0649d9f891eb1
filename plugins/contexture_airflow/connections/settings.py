"""Opens what the tasks work on: the home, and the clients of a publication's connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from contexture.errors import ConfigurationError
from contexture.publications import Publication
from contexture.sending.target import KafkaTarget, Target, TargetFor
from contexture.storage.archive import Interval
from contexture.storage.home import Home, ProgressCallback, home_uri

if TYPE_CHECKING:
    from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook

    from contexture.kafka import ClientSettings
    from contexture.publications.source import SourceKind
    from contexture.sources.http.connection import BrokerConnection, ConnectionFields
    from contexture.sources.sdmx.registry import RegistryConnection


def connection(connection_id: str) -> Connection:
    """The Airflow connection of that id.

    Raises:
        ConfigurationError: there is none.
    """
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException as error:
        raise ConfigurationError(
            f"there is no Airflow connection {connection_id!r}",
            next_step=f"add it under Admin, Connections, or set AIRFLOW_CONN_{connection_id.upper()}",
            connection=connection_id,
        ) from error


def fields(connection_id: str) -> ConnectionFields:
    """Returns the fields of a connection, for a test of it; its secrets are covered in logs.

    Raises:
        ConfigurationError: there is none.
    """
    from contexture.sources.http.connection import ConnectionFields

    found = connection(connection_id)
    if found.password:
        mask_secret(found.password)
    return ConnectionFields(
        host=found.host or "",
        kind=found.conn_type or "",
        scheme=found.schema or "",
        port=found.port,
        login=found.login or "",
        password=found.password or "",
        extra=found.extra_dejson,
    )


def source_connection(connection_id: str, kind: SourceKind = "ngsi") -> BrokerConnection | RegistryConnection:
    """The context broker or structure registry behind a connection of type `http`.

    Its fields are those of `contexture.sources.http.connection`, for a registry too.

    Raises:
        ConfigurationError: the connection is missing, or can not be used.
    """
    from contexture.sources.http.connection import broker_connection, secrets

    given = fields(connection_id)
    source: BrokerConnection | RegistryConnection
    if kind == "sdmx":
        from contexture.sources.sdmx.registry import registry_connection

        source = registry_connection(connection_id, given)
    else:
        source = broker_connection(connection_id, given)
    for value in secrets(source):
        mask_secret(value)
    return source


def kafka_settings(connection_id: str) -> ClientSettings:
    """The Kafka cluster behind a connection of type `kafka`, completed by the Kafka provider's hook.

    Raises:
        ConfigurationError: the connection is missing, or holds something that can not be used.
    """
    from airflow.providers.apache.kafka.hooks.base import KafkaBaseHook

    from contexture.kafka import ClientSettings
    from contexture.kafka.settings import secret_values

    found = connection(connection_id)
    extra = dict(found.extra_dejson)
    named = extra.get("bootstrap.servers")
    if isinstance(named, str) or not (named or found.host):
        extra = _completed(connection_id, KafkaBaseHook(connection_id))  # type: ignore[no-untyped-call]  # the provider ships no types for it
    settings = ClientSettings.from_connection(
        extra, host=found.host or "", port=found.port, login=found.login or "", password=found.password or ""
    )
    # A text with all settings of Java clients is a secret as a whole too.
    for value in (*settings.secrets(), *secret_values(extra)):
        mask_secret(value)
    return settings


def _completed(connection_id: str, hook: KafkaBaseHook) -> dict[str, object]:
    try:
        extra: dict[str, object] = hook._build_config()  # the hook offers clients, not settings
    except ValueError as error:
        raise ConfigurationError(
            f"the Kafka connection {connection_id!r} cannot be used: {error}",
            next_step="correct its extra: names of librdkafka, such as bootstrap.servers",
            connection=connection_id,
        ) from error
    return extra


def open_home() -> Home:
    """The files below `CONTEXTURE_HOME`."""
    return Home(home_uri())


def targets(report: ProgressCallback) -> TargetFor:
    """Returns an opener of the Kafka that a publication's connection names; `report` gets what takes long.

    The opener raises a ConfigurationError when the connection is missing or can not be used.
    """

    def open_target(publication: Publication, interval: Interval | None) -> Target:
        return KafkaTarget(kafka_settings(publication.publish.connection), publication, interval, report)

    return open_target
