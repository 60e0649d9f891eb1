"""Reading quarantines, and starting a run that retries quarantined events."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from contexture.errors import ConfigurationError
from contexture.operations import environment
from contexture.operations.actions.interventions import retry_order
from contexture.operations.airflow_client import URL_VARIABLE, airflow_of_environment
from contexture.storage.publication_store import PublicationStore


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
        return asdict(self)

    def lines(self) -> Iterator[str]:
        events = "1 event" if self.events == 1 else f"{self.events} events"
        if self.run is None:
            yield f"{events} of outbox {self.outbox} can be retried; {URL_VARIABLE} is not set, so start it with:"
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
    found = environment.find_outbox(environment.open_home(), outbox)
    order = retry_order(found.store, found.status.outbox, rules, reason)
    command = shlex.join(["airflow", "dags", "trigger", order.dag, "--conf", json.dumps(order.conf)])
    airflow = airflow_of_environment()
    if airflow is None:
        return Started(order.dag, order.outbox, order.events, None, None, False, command)
    paused = airflow.is_paused(order.dag)
    run = airflow.trigger(order.dag, order.conf)
    return Started(order.dag, order.outbox, order.events, run, airflow.page(order.dag, run), paused, command)


_SHOWN = ("path", "id", "type", "rule", "severity", "message")
# Names and sizes are Kafka's limits, and forms are the registry's: no setting of a rule lifts them.
_WITHOUT_CHOICE = {
    "topic-length": "choose another topics.data_model or naming, or rename these entities in their source",
    "topic-name": "write topics.routes whose names are legal for these structures too",
    "inexpressible": "set another source.media_type, or leave these structures out of source.select",
    "size": "raise max.message.bytes in topics.config and the brokers' limit, or make these entities smaller",
}
_OF_THE_SOURCE = (
    "correct them in their source, and the next run that reads them publishes them; where a rule is too strict, set it "
    "in quality.rules"
)


@dataclass(slots=True)
class QuarantineListing:
    """Refused rows: how many by publication and rule, and the first ones; of one rule, where that was asked for."""

    rule: str | None = None
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    rows: list[dict[str, str | None]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        counts = [
            {"publication": publication, "rule": rule, "rows": number}
            for (publication, rule), number in sorted(self.counts.items())
        ]
        return {"counts": counts, "rows": asdict(self)["rows"]}

    def next_steps(self) -> list[str]:
        """What a person can do about these rows."""
        rules = {rule for _, rule in self.counts}
        steps = [step for rule, step in _WITHOUT_CHOICE.items() if rule in rules]
        return [*steps, _OF_THE_SOURCE] if rules - _WITHOUT_CHOICE.keys() else steps


@dataclass(frozen=True, slots=True)
class QuarantineFilter:
    """Which rows: of one rule or all, also those that were tried again, with their bodies."""

    rule: str | None = None
    retried: bool = False
    bodies: bool = False


def read(publication: str | None, outbox: str | None, wanted: QuarantineFilter, *, limit: int) -> QuarantineListing:
    """The refused rows of the outboxes that are kept, the newest outbox first.

    Raises:
        ConfigurationError: there is no such publication or outbox.
    """
    held = QuarantineListing(wanted.rule)
    for owner, name in _chosen(publication, outbox):
        for row in _rows(owner, name, wanted):
            if wanted.rule is not None and row["rule"] != wanted.rule:
                continue
            held.counts[owner.name, str(row["rule"])] += 1
            if len(held.rows) < limit:
                held.rows.append({"publication": owner.name, "outbox": name, **row})
    return held


def _chosen(publication: str | None, outbox: str | None) -> list[tuple[PublicationStore, str]]:
    home = environment.open_home()
    if outbox is not None:
        found = environment.find_outbox(home, outbox)
        if publication not in {None, found.publication}:
            raise ConfigurationError(
                f"outbox {found.status.outbox} is one of {found.publication}, not of {publication}",
                next_step="leave the publication out",
            )
        return [(found.store, found.status.outbox)]
    owners = environment.stores(home, publication)
    return [(owner, status.outbox) for owner in owners for status in reversed(owner.outboxes.all())]


def _rows(owner: PublicationStore, outbox: str, wanted: QuarantineFilter) -> Iterator[dict[str, str | None]]:
    quarantine = owner.quarantine(outbox)
    retried = quarantine.retried()
    columns = ["ordinal", *_SHOWN, *(["body"] if wanted.bodies else [])]
    for part in quarantine.parts:
        for row in quarantine.rows(part, columns).to_pylist():
            again = retried.get(row.pop("ordinal"))
            if again is not None and not wanted.retried:
                continue
            if wanted.bodies:
                row["body"] = (row["body"] or b"").decode("utf-8", "replace")
            yield row if again is None else {**row, "retried": again}
