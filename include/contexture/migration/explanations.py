"""What becomes of each parameter of a Cygnus agent."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from contexture.migration.agents import Agents, Component, Parameter
from contexture.migration.java_properties import JavaProperty
from contexture.publications.problems import looks_secret

Outcome = Literal["kept", "replaced", "no longer needed", "left out", "unknown", "wrong"]

_HIDDEN = "***"
_OUTBOX = "what isn't sent yet lies in the outbox, on storage; its size is the disk's"
_NO_OP = "Cygnus ignored it for Kafka"
_NO_SERVER = "nothing listens: the broker is read (with mode: notifications, `contexture notify serve` does)"

# Of the Kafka sink: what becomes of a parameter, and what it is called now or why it isn't needed.
SINK: dict[str, tuple[Outcome, str]] = {
    "type": ("replaced", "this file: one publication for each Kafka sink"),
    "channel": ("replaced", _OUTBOX),
    "data_model": ("kept", "topics.data_model"),
    "topic_type": ("kept", "topics.data_model, as Cygnus calls it since 1.0"),
    "enable_grouping": ("kept", "topics.enable_grouping"),
    "enable_name_mappings": ("kept", "topics.enable_name_mappings"),
    "enable_lowercase": ("kept", "topics.enable_lowercase"),
    "enable_encoding": ("no longer needed", "topic names are always encoded, as Cygnus' Kafka sink did"),
    "broker_list": ("replaced", "`bootstrap.servers` of the connection that publish.connection names"),
    "zookeeper_endpoint": ("no longer needed", "Kafka has no ZooKeeper any more; topics are made through the brokers"),
    "partitions": ("kept", "topics.partitions"),
    "replication_factor": ("kept", "topics.replication_factor"),
    "batch_size": ("kept", "batches.batch_size"),
    "batch_timeout": ("kept", "batches.batch_timeout"),
    "batch_ttl": ("kept", "batches.batch_ttl"),
    "batch_retry_intervals": ("kept", "batches.batch_retry_intervals"),
    "persistence_policy.max_records": ("no longer needed", _NO_OP),
    "persistence_policy.expiration_time": ("no longer needed", _NO_OP),
    "persistence_policy.checking_time": ("no longer needed", _NO_OP),
}

SOURCE: dict[str, tuple[Outcome, str]] = {
    "type": ("replaced", "source.kind: ngsi"),
    "channels": ("replaced", _OUTBOX),
    "port": ("no longer needed", _NO_SERVER),
    "bind": ("no longer needed", _NO_SERVER),
    "handler": ("no longer needed", _NO_SERVER),
    "handler.notification_target": ("no longer needed", _NO_SERVER),
    "handler.default_service": ("replaced", "source.service"),
    "handler.default_service_path": ("replaced", "source.service_path, which reads every path as /#"),
    "handler.events_ttl": ("replaced", "batches.batch_ttl"),
    "interceptors": ("replaced", "topics: grouping_rules and name_mappings; a record's time is that of the change"),
}

_INTERCEPTED: dict[str, tuple[Outcome, str]] = {
    "type": ("replaced", "topics: grouping_rules and name_mappings"),
    "grouping_rules_conf_file": ("replaced", "topics.grouping_rules"),
    "name_mappings_conf_file": ("replaced", "topics.name_mappings"),
    "enable_encoding": ("replaced", "topics.compat: cygnus-2.19 joins id and type by _, as false does"),
    "matching_table": ("replaced", "topics.grouping_rules: write its lines as rules"),
}


@dataclass(frozen=True, slots=True)
class Explained:
    """What becomes of one line of the file.

    Attributes:
        key: as the file has it.
        value: as the file has it, but a secret.
        line: where it stands.
        outcome: what becomes of it.
        why: what it is called now, what replaces it, or why it isn't needed.
    """

    key: str
    value: str
    line: int
    outcome: Outcome
    why: str


def explain(agents: Agents, kafka_sinks: list[Component], wrong: dict[str, str]) -> list[Explained]:
    """Every property of the file, by line.

    Args:
        agents: what the file says.
        kafka_sinks: the sinks that became publications.
        wrong: properties whose value can't be kept, by key, with the reason.
    """
    explained = [
        _told(each, "replaced", "which components there are; each sink is explained below") for each in agents.lists
    ]
    explained += [
        _told(each, "no longer needed", "a later line of the same key replaces it") for each in agents.repeated
    ]
    explained += [_told(each, "unknown", "it belongs to no source, channel or sink") for each in agents.strange]
    feeding = {id(source) for sink in kafka_sinks for source in agents.sources_of(sink)}
    for component in agents.components:
        explained += _of_component(component, component in kafka_sinks, id(component) in feeding, wrong)
    return sorted(explained, key=lambda each: each.line)


def _of_component(component: Component, is_kafka: bool, feeds: bool, wrong: dict[str, str]) -> Iterator[Explained]:
    for parameter in component.parameters:
        origin = parameter.origin
        if origin.key in wrong:
            yield _told(origin, "wrong", wrong[origin.key])
        elif is_kafka:
            yield _told(origin, *_known(SINK, parameter))
        elif component.kind == "sources" and feeds:
            yield _told(origin, *_of_source(parameter))
        elif component.kind == "channels":
            yield _told(origin, "no longer needed", _OUTBOX)
        else:
            yield _told(origin, "left out", _other(component))


def _other(component: Component) -> str:
    if component.kind == "sinkgroups":
        return "publications don't share work; each has shards of its own"
    if not component.listed:
        return f"the agent doesn't list {component.name}, so that Flume never ran it"
    if component.kind == "sources":
        return "it feeds no Kafka sink"
    return f"{component.class_name or 'it'} is no Kafka sink of Cygnus: Contexture only replaces that"


def _of_source(parameter: Parameter) -> tuple[Outcome, str]:
    kind, _, rest = parameter.name.partition(".")
    if kind == "selector":
        return "no longer needed", "each publication reads for itself"
    if kind == "interceptors" and rest:
        name = rest.partition(".")[2]
        if (name, parameter.value) == ("type", "timestamp"):
            return "no longer needed", "every event has the time of its reception"
        return _INTERCEPTED.get(name, ("unknown", "Contexture knows no such interceptor's parameter"))
    return _known(SOURCE, parameter)


def _known(known: dict[str, tuple[Outcome, str]], parameter: Parameter) -> tuple[Outcome, str]:
    if parameter.name in known:
        return known[parameter.name]
    nearest = difflib.get_close_matches(parameter.name, known, n=1)
    hint = f"; did it mean {nearest[0]}?" if nearest else ""
    return "unknown", f"neither Cygnus nor Contexture knows it{hint}"


def _told(origin: JavaProperty, outcome: Outcome, why: str) -> Explained:
    # Other sinks of the agent keep passwords in this file.
    value = _HIDDEN if looks_secret(origin.key.rpartition(".")[2]) else origin.value
    return Explained(origin.key, value, origin.line, outcome, why)
