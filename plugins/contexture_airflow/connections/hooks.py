"""Hooks of our own connection types: what Airflow's test of a connection runs, and settings for tasks of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from airflow.sdk import BaseHook

from contexture_airflow.connections.provider import CONTEXT_BROKER, KAFKA, STRUCTURE_REGISTRY

if TYPE_CHECKING:
    from contexture.kafka import ClientSettings
    from contexture.operations.actions.source_check import CheckOutcome
    from contexture.sources.http.connection import BrokerConnection
    from contexture.sources.sdmx.registry import RegistryConnection

_TIMEOUT_SECONDS: Final = 10.0


class _CheckedHook(BaseHook):
    """A connection that is tested step by step, as `contexture connection test` does.

    Args:
        connection_id: of the Airflow connection.
    """

    conn_name_attr: ClassVar[str] = "connection_id"
    conn_type: ClassVar[str]
    hook_name: ClassVar[str]

    def __init__(self, connection_id: str) -> None:
        super().__init__()
        self.connection_id = connection_id

    def test_connection(self) -> tuple[bool, str]:
        """Whether it works, and each step with its verdict, its time and what to do; never a secret."""
        from contexture.errors import ContextureError

        try:
            outcome = self._outcome()
        except ContextureError as error:
            return False, str(error)
        except Exception as error:
            # Airflow would show its text, which may quote what the connection holds.
            self.log.exception("the test of a connection of type %s failed itself", self.conn_type)
            return False, f"the test itself failed ({type(error).__name__}): see the log of the process that ran it"
        return outcome.passed, outcome.text()

    def _outcome(self) -> CheckOutcome:
        from contexture.operations.actions.connection_check import check_connection_fields
        from contexture_airflow.connections.settings import fields

        # Covers its secrets in logs, and raises first what makes it unusable.
        self.get_conn()
        found = fields(self.connection_id)
        return check_connection_fields(self.connection_id, found, service="", timeout_seconds=_TIMEOUT_SECONDS)


class KafkaClusterHook(_CheckedHook):
    """A connection of type `contexture_kafka`."""

    conn_type = KAFKA
    hook_name = "Kafka (Contexture)"

    def get_conn(self) -> ClientSettings:
        """The settings for clients of Kafka.

        Raises:
            ConfigurationError: the connection is missing, or holds something that can't be used.
        """
        from contexture_airflow.connections.settings import kafka_settings

        return kafka_settings(self.connection_id)


class ContextBrokerHook(_CheckedHook):
    """A connection of type `contexture_ngsi`."""

    conn_type = CONTEXT_BROKER
    hook_name = "Context broker (Contexture)"

    def get_conn(self) -> BrokerConnection | RegistryConnection:
        """The context broker's address, with what opens it.

        Raises:
            ConfigurationError: the connection is missing, or holds something that can't be used.
        """
        from contexture_airflow.connections.settings import source_connection

        return source_connection(self.connection_id, "ngsi")


class StructureRegistryHook(_CheckedHook):
    """A connection of type `contexture_sdmx`."""

    conn_type = STRUCTURE_REGISTRY
    hook_name = "Structure registry (Contexture)"

    def get_conn(self) -> BrokerConnection | RegistryConnection:
        """The registry's address, with what opens it.

        Raises:
            ConfigurationError: the connection is missing, or holds something that can't be used.
        """
        from contexture_airflow.connections.settings import source_connection

        return source_connection(self.connection_id, "sdmx")
