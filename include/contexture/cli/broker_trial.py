"""Testing a connection to a context broker."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx

from contexture.cli import connections
from contexture.cli.trial_outcome import Outcome, Step
from contexture.errors import ConfigurationError, ContextureError, RetriableError
from contexture.sources.http.connection import ConnectionFields

if TYPE_CHECKING:
    from datetime import datetime

    from contexture.sources.ngsi import BrokerConnection
    from contexture.sources.ngsi.broker import Flavour
    from contexture.sources.ngsi.entity import EntityForm


class BrokerTrial:
    """The test of one connection.

    Args:
        connection_id: of the connection.
        fields: as Airflow has them.
        service: the tenant to ask.
        timeout_seconds: for each step.

    Attributes:
        silence: why nothing answered at all, once it was tried; None where something did.
    """

    def __init__(self, connection_id: str, fields: ConnectionFields, service: str, timeout_seconds: float) -> None:
        self._id = connection_id
        self._fields = fields
        self._service = service
        self._seconds = timeout_seconds
        self.silence: str | None = None

    def outcome(self) -> Outcome:
        """What every step found.

        Raises:
            ConfigurationError: the fields lead to no connection.
        """
        broker = replace(connections.context_broker(self._id, self._fields), timeout_seconds=self._seconds)
        started, unreachable, steps = time.monotonic(), False, []
        try:
            flavour, api, clock = _asked(broker, self._service)
            detail, passed = f"its database answers; its clock says {clock.isoformat()}", True
            steps = [Step(name="flavour", passed=True, detail=f"{flavour}, asked by source.api {api}", seconds=0.0)]
        except ContextureError as error:
            detail, passed, unreachable = str(error), False, isinstance(error, RetriableError)
            self.silence = type(error.__cause__).__name__ if isinstance(error.__cause__, httpx.TransportError) else None
        probe = Step(name="probe", passed=passed, detail=detail, seconds=time.monotonic() - started)
        return Outcome(
            connection=self._id,
            kind=self._fields.kind,
            target=broker.address,
            unreachable=unreachable,
            steps=(probe, *steps),
        )


def _asked(broker: BrokerConnection, service: str) -> tuple[Flavour, EntityForm, datetime]:
    """Which broker it is, the interface it answered by, and its clock."""
    from contexture.sources.http.transport import Patience
    from contexture.sources.ngsi import Dialect, open_broker
    from contexture.sources.ngsi.broker import SPEAKS_LINKED_DATA
    from contexture.sources.ngsi.connect import detect

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
