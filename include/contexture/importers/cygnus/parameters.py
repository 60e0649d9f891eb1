"""The parameters of a Kafka sink, with the rules, defaults and explanations of Cygnus."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from contexture.importers.cygnus.flume import Agents, Component, Parameter
from contexture.importers.result import Outcome, ParameterResult, explain

_OUTBOX = "what is not sent yet is in the outbox, on storage; its size is the disk's"
_NO_OP = "Cygnus ignored it for Kafka"
_NO_SERVER = "nothing listens: the broker is read (with mode: notifications, `contexture notify serve` does)"

# Of the Kafka sink: the outcome of a parameter, and its new name or why it is not needed.
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


def explain_parameter(agents: Agents, kafka_sinks: list[Component], wrong: dict[str, str]) -> list[ParameterResult]:
    """Explains every property of the file, by line.

    Args:
        agents: the content of the file.
        kafka_sinks: the sinks that became publications.
        wrong: properties whose value cannot be kept, by key, with the reason.
    """
    explained = [
        explain(each, "replaced", "which components there are; each sink is explained below") for each in agents.lists
    ]
    explained += [
        explain(each, "no longer needed", "a later line of the same key replaces it") for each in agents.repeated
    ]
    explained += [explain(each, "unknown", "it belongs to no source, channel or sink") for each in agents.strange]
    feeding = {id(source) for sink in kafka_sinks for source in agents.sources_of(sink)}
    for component in agents.components:
        explained += _of_component(component, component in kafka_sinks, id(component) in feeding, wrong)
    return sorted(explained, key=lambda each: each.line)


def _of_component(
    component: Component, is_kafka: bool, feeds: bool, wrong: dict[str, str]
) -> Iterator[ParameterResult]:
    for parameter in component.parameters:
        origin = parameter.origin
        if origin.key in wrong:
            yield explain(origin, "wrong", wrong[origin.key])
        elif is_kafka:
            yield explain(origin, *_known(SINK, parameter))
        elif component.kind == "sources" and feeds:
            yield explain(origin, *_of_source(parameter))
        elif component.kind == "channels":
            yield explain(origin, "no longer needed", _OUTBOX)
        else:
            yield explain(origin, "left out", _other(component))


def _other(component: Component) -> str:
    if component.kind == "sinkgroups":
        return "publications do not share work; each has shards of its own"
    if not component.listed:
        return f"the agent does not list {component.name}, so that Flume never ran it"
    if component.kind == "sources":
        return "it feeds no Kafka sink"
    return f"{component.class_name or 'it'} is not a Kafka sink of Cygnus: Contexture only replaces that"


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


T = TypeVar("T")

DATA_MODELS = ("dm-by-service", "dm-by-service-path", "dm-by-entity", "dm-by-attribute")
DEFAULT_BROKERS = "localhost:9092"

# The name of data models before release 1.0.
_BY_TOPIC_TYPE = {
    "topic-by-service": "dm-by-service",
    "topic-by-service-path": "dm-by-service-path",
    "topic-by-destination": "dm-by-entity",
}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_BY_PLAIN_NAME = {model.replace("-", ""): model for model in DATA_MODELS}


@dataclass(frozen=True, slots=True)
class SinkParameters:
    """The configuration of a Kafka sink, in Cygnus' names. `batch_timeout` is in seconds, the intervals in ms."""

    data_model: str
    enable_grouping: bool
    enable_name_mappings: bool
    enable_lowercase: bool
    broker_list: str
    partitions: int
    replication_factor: int
    batch_size: int
    batch_timeout: int
    batch_ttl: int
    batch_retry_intervals: tuple[int, ...]

    @property
    def own_topic_for_each_key(self) -> bool:
        """Whether all records of a topic are of one entity, or of one attribute."""
        plain = not (self.enable_grouping or self.enable_name_mappings or self.enable_lowercase)
        return plain and self.data_model in {"dm-by-entity", "dm-by-attribute"}


def read_parameters(sink: Component) -> tuple[SinkParameters, dict[str, str]]:
    """Reads the parameters of a sink, and what is wrong with those that cannot be used, by the file's key.

    A parameter that cannot be used has its default.
    """
    reader = _Reader(sink)
    parameters = SinkParameters(
        data_model=reader.read("data_model", reader.read("topic_type", "dm-by-entity", _topic_type), _data_model),
        enable_grouping=reader.read("enable_grouping", False, _flag),
        enable_name_mappings=reader.read("enable_name_mappings", False, _flag),
        enable_lowercase=reader.read("enable_lowercase", False, _flag),
        broker_list=reader.read("broker_list", DEFAULT_BROKERS, _brokers),
        partitions=reader.read("partitions", 1, _at_least(1)),
        replication_factor=reader.read("replication_factor", 1, _at_least(1)),
        batch_size=reader.read("batch_size", 1, _at_least(1)),
        batch_timeout=reader.read("batch_timeout", 30, _at_least(1)),
        batch_ttl=reader.read("batch_ttl", 10, _at_least(-1)),
        batch_retry_intervals=reader.read("batch_retry_intervals", (5000,), _intervals),
    )
    return parameters, reader.wrong


class _Reader:
    def __init__(self, sink: Component) -> None:
        self._sink = sink
        self.wrong: dict[str, str] = {}

    def read(self, name: str, default: T, convert: Callable[[str], T]) -> T:
        value = self._sink.value(name)
        if not value:
            return default
        try:
            return convert(value)
        except ValueError as error:
            key = f"{self._sink.agent}.sinks.{self._sink.name}.{name}"
            self.wrong[key] = f"{error}; the default {_written(default)} was written"
            return default


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _data_model(text: str) -> str:
    # Cygnus ignores hyphens and case.
    model = _BY_PLAIN_NAME.get(text.replace("-", "").lower())
    if model is None:
        raise ValueError(f"Cygnus' Kafka sink writes nothing with it: expected one of {', '.join(DATA_MODELS)}")
    return model


def _topic_type(text: str) -> str:
    if text not in _BY_TOPIC_TYPE:
        raise ValueError(f"expected one of {', '.join(_BY_TOPIC_TYPE)}")
    return _BY_TOPIC_TYPE[text]


def _flag(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text == "true"


def _at_least(lowest: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        # Python alone would read 1_000 too.
        if not _WHOLE_NUMBER.fullmatch(text) or int(text) < lowest:
            raise ValueError(f"expected a whole number of at least {lowest}")
        return int(text)

    return convert


def _intervals(text: str) -> tuple[int, ...]:
    return tuple(map(_at_least(1), (part.strip() for part in text.split(","))))


def _brokers(text: str) -> str:
    return ",".join(part.strip() for part in text.split(",") if part.strip())


class Difference(NamedTuple):
    """One difference: what it is about, what Cygnus does, and what Contexture does."""

    title: str
    cygnus: str
    contexture: str


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "how changes arrive",
        "waits for notifications; what arrives while it is down is lost",
        "reads the broker: nothing is missed, but of several changes between two reads only the last is published; "
        "with mode: notifications each is published, and kept on disk until then",
    ),
    Difference(
        "what an event holds",
        "the attributes that the subscription notifies",
        "the whole entity, or those of source.attributes; with changes only entities that differ from the topic's",
    ),
    Difference(
        "lines of NGSIv1 notifications",
        "have isPattern, and numbers as texts, as brokers sent them then",
        "lines are those of NGSIv2 notifications: without isPattern, values with their JSON types; "
        "what is notified as legacy is written as Cygnus wrote it",
    ),
    Difference(
        "services",
        "one sink takes every service; the header is kept as sent",
        "one publication for each service, in lower case, as brokers store it",
    ),
    Difference(
        "service paths",
        "refuses more than 50 characters or a space after a comma",
        "every path a broker has, up to 10 levels",
    ),
    Difference(
        "the header timestamp",
        "when the notification arrived",
        "when the page with the entity, or its notification, arrived; the record's own time is that of the change",
    ),
    Difference(
        "keys and order",
        "no key: records of one entity may change places",
        "the entity is the key where all events of a record share it, so that its records stay in order",
    ),
    Difference(
        "order in a line and in a batch",
        "attributes, metadata and sub-batches in Java's hash order",
        "attributes and metadata as the broker sent them, sub-batches by first arrival",
    ),
    Difference(
        "paths in a record of several lines",
        "every line has the service path of the first",
        "each line has its own",
    ),
    Difference("quotes in service and path", "pasted into the JSON, which breaks it", "escaped"),
    Difference(
        "dm-by-attribute",
        "only the last attribute is written, once for each; without the name-mappings interceptor nothing is",
        "each attribute is written to its own topic, renamed or not, and is an event that batch_size counts",
    ),
    Difference(
        "entities without attributes",
        "fail up to 2.19",
        "are written with an empty list; by attribute there is nothing to write",
    ),
    Difference(
        "names that collide",
        "entities whose joined names are equal share a sub-batch, and one's data goes to the other's topic",
        "every event goes to its own topic; equal topic names of two entities are found and reported",
    ),
    Difference(
        "names that Kafka refuses",
        "retried until batch_ttl, then dropped",
        "found before anything is sent, and kept in quarantine with the reason",
    ),
    Difference(
        "when a batch closes",
        "batch_timeout counts from the end of the batch before, and is checked when Flume polls",
        "batch_timeout counts from the batch's first event; the end of a run closes its last batch",
    ),
    Difference(
        "large batches",
        "above the channel's transaction capacity nothing is delivered; above 1 MiB a record is lost",
        "no channel; a record that Kafka would refuse is split between lines",
    ),
    Difference(
        "file channels",
        "data with the text xffff, or quotes in ids, block them; absent members come back as the text null",
        "no channel; every text is published as it is, and what is absent stays absent",
    ),
    Difference(
        "retries",
        "each event of a failed batch by itself, in memory; after batch_ttl dropped, with the batch that waits next; "
        "-1 stays at the first interval",
        "the same records in the same order; after batch_ttl the run fails and the outbox waits; -1 follows the list "
        "and stays at its last interval",
    ),
    Difference(
        "delivery",
        "sent without waiting for the brokers' answer: their failures are counted as success",
        "acknowledged by all replicas, in transactions, exactly once for consumers with isolation.level=read_committed",
    ),
    Difference(
        "new topics",
        "made one by one through ZooKeeper, before every sub-batch",
        "made together before the first record, through the brokers; more than topics.max_new_topics stop the run",
    ),
    Difference(
        "data that breaks a rule",
        "is published, or fails the whole notification",
        "goes to quarantine with the rule, counted; `quality.rules` switches rules",
    ),
    Difference(
        "grouping rules and name mappings",
        "read again every 30 s; what is wrong is dropped, or disables the file, without a word",
        "read with the publication; what is wrong is reported with its place; an edit sends everything again",
    ),
    Difference(
        "entities that no grouping rule matches",
        "id and type are joined by _, unless the interceptor's enable_encoding is true; an absent type is null",
        "named as without rules; `compat: cygnus-2.19` keeps what Cygnus did",
    ),
    Difference(
        "what name mappings match",
        ".* replaces twice; a path changes only where an entity mapping has the type; where none has the entity, the "
        "attributes of the last change; an attribute mapping without both originals disables the file",
        "each mapping changes what it matches, once, and an absent original is any; `compat: cygnus-2.19` keeps the "
        "first three",
    ),
    Difference(
        "deletions",
        "never published",
        "not published either, until detect_deletions: true sends records without a value",
    ),
    Difference(
        "statistics and administration",
        "an HTTP interface without authentication",
        "Airflow's pages and API, `contexture status`, the operational tables",
    ),
)
"""In the order in which a reader of topics meets them."""
