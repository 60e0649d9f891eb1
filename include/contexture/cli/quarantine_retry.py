"""Starting a run that tries quarantined events again, or saying how to."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from contexture.cli import home
from contexture.cli.airflow import Airflow
from contexture.cli.airflow_access import URL_VARIABLE, AirflowAccess
from contexture.operations.interventions import retry_order


@dataclass(frozen=True, slots=True)
class Started:
    """What was asked for.

    Attributes:
        dag: the DAG of the publication.
        outbox: whose quarantine it is.
        events: how many events are tried again.
        run: the id of the started run; None: it was not started.
        page: the run's page in Airflow.
        paused: the DAG is paused, so that the run waits.
        command: starts the run where Airflow's own command line is.
    """

    dag: str
    outbox: str
    events: int
    run: str | None
    page: str | None
    paused: bool
    command: str

    def as_dict(self) -> dict[str, Any]:
        """As one JSON document."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """As lines of text."""
        events = "1 event" if self.events == 1 else f"{self.events} events"
        if self.run is None:
            yield f"{events} of outbox {self.outbox} can be tried again; {URL_VARIABLE} is not set, so start it with:"
            yield self.command
            return
        yield f"started {self.dag} for {events} of outbox {self.outbox}: {self.page}"
        if self.paused:
            yield f"{self.dag} is paused: the run waits until it is resumed (airflow dags unpause {self.dag})"


def start(outbox: str, rules: tuple[str, ...], reason: str | None) -> Started:
    """Starts the run through Airflow's REST interface, where its address is known.

    Raises:
        ConfigurationError: there is no such outbox, nothing of it is held back, or Airflow refuses us.
        RetriableError: the storage or Airflow did not answer.
    """
    found = home.find_outbox(home.open_home(), outbox)
    order = retry_order(found.outboxes.storage, found.publication, found.status.outbox, rules, reason)
    command = shlex.join(["airflow", "dags", "trigger", order.dag, "--conf", json.dumps(order.conf)])
    if not os.environ.get(URL_VARIABLE):
        return Started(order.dag, order.outbox, order.events, None, None, False, command)
    airflow = Airflow(AirflowAccess.from_environment())
    paused = airflow.is_paused(order.dag)
    run = airflow.trigger(order.dag, order.conf)
    return Started(order.dag, order.outbox, order.events, run, airflow.page(order.dag, run), paused, command)
