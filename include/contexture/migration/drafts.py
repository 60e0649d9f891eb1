"""The YAML of one publication that does what a Kafka sink of Cygnus did."""

from __future__ import annotations

import json
from dataclasses import dataclass

from contexture.migration.parameters import SinkParameters

SOURCE_CONNECTION = "context_broker"


@dataclass(frozen=True, slots=True)
class Draft:
    """A publication to be written, and the files it names.

    Attributes:
        name: of the publication.
        text: its YAML, with comments.
        origin: the sink, as `agent.sinks.name`.
        files: the names of grouping rules and name mappings that it has beside it.
    """

    name: str
    text: str
    origin: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flow:
    """What a publication is made of.

    Attributes:
        name: of the publication.
        sink: the sink it comes from, as `agent.sinks.name`.
        service: the Fiware-Service it reads.
        service_known: the service was given, and isn't a guess.
        naming: `cygnus`, or `cygnus-legacy` for the sink of the first releases.
        release: the release of Cygnus whose names are kept, such as 1.9; None for those of today.
        grouping_rules, name_mappings: the files' names beside the publication; None where there are none.
        connection: id of the connection to Kafka.
        parameters: the sink's.
    """

    name: str
    sink: str
    service: str
    service_known: bool
    naming: str
    release: str | None
    grouping_rules: str | None
    name_mappings: str | None
    connection: str
    parameters: SinkParameters


def draft(flow: Flow) -> Draft:
    """The publication of a flow."""
    lines = [*_head(flow), *_source(flow), *_topics(flow), *_batches(flow), *_message(flow)]
    lines += ["publish:", f"  connection: {flow.connection}  # its bootstrap.servers are what broker_list was"]
    files = tuple(name for name in (flow.grouping_rules, flow.name_mappings) if name is not None)
    return Draft(flow.name, "\n".join(lines) + "\n", flow.sink, files)


def _head(flow: Flow) -> list[str]:
    return [
        f"# Made by `contexture import cygnus` from the sink {flow.sink}.",
        "# The same topics and lines; what differs on purpose is said by that command and in docs/how-to.",
        f"name: {flow.name}",
        f"description: {_text(f'What the Cygnus sink {flow.sink} published')}",
        'schedule: "*/5 * * * *"  # Cygnus waited for notifications; the broker is read this often',
    ]


def _source(flow: Flow) -> list[str]:
    doubt = "" if flow.service_known else "; CHANGE IT if your subscriptions use another"
    return [
        "source:",
        "  kind: ngsi",
        f"  connection: {SOURCE_CONNECTION}  # the broker that notified Cygnus",
        f"  service: {_text(flow.service)}  # Cygnus took it from each notification; a publication has one{doubt}",
        '  service_path: "/#"  # all of them, as Cygnus took what came; name some to publish less',
        "  # types: [car]  # what your subscriptions select; without it every type",
        "  mode: changes",
        "  detect_deletions: false  # Cygnus told none; true sends records without a value",
    ]


def _topics(flow: Flow) -> list[str]:
    parameters = flow.parameters
    lines = ["topics:", f"  naming: {flow.naming}", f"  data_model: {parameters.data_model}"]
    if flow.release:
        lines.append(f"  cygnus_version: {_text(flow.release)}  # the names of that release")
    if parameters.enable_lowercase:
        lines.append("  enable_lowercase: true")
    if flow.grouping_rules:
        lines += ["  enable_grouping: true", f"  grouping_rules: {_text(flow.grouping_rules)}"]
    if flow.name_mappings:
        lines += ["  enable_name_mappings: true", f"  name_mappings: {_text(flow.name_mappings)}"]
    if flow.grouping_rules or flow.name_mappings:
        lines.append("  # compat: cygnus-2.19  # keeps that release's quirks of naming, for topics that depend on them")
    return [
        *lines,
        f"  partitions: {parameters.partitions}",
        f"  replication_factor: {parameters.replication_factor}",
        "  keep: history  # every change stays as long as the topic's retention says, as before",
    ]


def _batches(flow: Flow) -> list[str]:
    parameters = flow.parameters
    intervals = ", ".join(map(str, parameters.batch_retry_intervals))
    return [
        "batches:",
        f"  batch_size: {parameters.batch_size}",
        f"  batch_timeout: {parameters.batch_timeout}",
        f"  batch_ttl: {parameters.batch_ttl}",
        f"  batch_retry_intervals: [{intervals}]",
    ]


def _message(flow: Flow) -> list[str]:
    one_entity = flow.parameters.own_topic_for_each_key and flow.naming == "cygnus" and flow.release is None
    if flow.parameters.batch_size == 1 or one_entity:
        key = "  key: identity  # Cygnus wrote none; with a key all records of an entity stay in order"
    else:
        key = "  key: none  # as Cygnus; lines of several entities in one record have no common key"
    return ["message:", "  format: cygnus-lines", key]


def _text(value: str) -> str:
    # JSON's strings are YAML's.
    return json.dumps(value, ensure_ascii=False)
