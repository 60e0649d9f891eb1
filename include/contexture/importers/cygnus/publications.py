"""From a Cygnus agent to publications: its sinks, services, connections and name files; reading and writing them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from contexture.errors import ConfigurationError
from contexture.importers.cygnus.flume import Agents, Component, Parameter, read_agents
from contexture.importers.cygnus.parameters import SinkParameters, explain_parameter, read_parameters
from contexture.importers.properties_file import decode_properties, parse_properties, read_bytes
from contexture.importers.result import Draft, Imported, ImportResult, check_import
from contexture.publications.yaml_document import quote

SOURCE_CONNECTION = "context_broker"


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
    lines = [*_head(flow), *_topics(flow), *_batches(flow), *_message(flow)]
    lines += ["publish:", f"  connection: {flow.connection}  # its bootstrap.servers are what broker_list was"]
    files = tuple(name for name in (flow.grouping_rules, flow.name_mappings) if name is not None)
    return Draft(flow.name, "\n".join(lines) + "\n", flow.sink, files)


def _head(flow: Flow) -> list[str]:
    doubt = "" if flow.service_known else "; CHANGE IT if your subscriptions use another"
    return [
        f"# Made by `contexture import cygnus` from the sink {flow.sink}.",
        "# The same topics and lines; what differs on purpose is listed by that command and in docs/how-to.",
        f"name: {flow.name}",
        f"description: {quote(f'What the Cygnus sink {flow.sink} published')}",
        'schedule: "*/5 * * * *"  # Cygnus waited for notifications; the broker is read this often',
        "source:",
        "  kind: ngsi",
        f"  connection: {SOURCE_CONNECTION}  # the broker that notified Cygnus",
        f"  service: {quote(flow.service)}  # Cygnus took it from each notification; a publication has one{doubt}",
        '  service_path: "/#"  # all of them, as Cygnus took what came; name some to publish less',
        "  # types: [car]  # what your subscriptions select; without it every type",
        "  mode: changes",
        "  detect_deletions: false  # Cygnus published none; true sends records without a value",
    ]


def _topics(flow: Flow) -> list[str]:
    parameters = flow.parameters
    lines = ["topics:", f"  naming: {flow.naming}", f"  data_model: {parameters.data_model}"]
    if flow.release:
        lines.append(f"  cygnus_version: {quote(flow.release)}  # the names of that release")
    if parameters.enable_lowercase:
        lines.append("  enable_lowercase: true")
    if flow.grouping_rules:
        lines += ["  enable_grouping: true", f"  grouping_rules: {quote(flow.grouping_rules)}"]
    if flow.name_mappings:
        lines += ["  enable_name_mappings: true", f"  name_mappings: {quote(flow.name_mappings)}"]
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


@dataclass(frozen=True, slots=True)
class RuleFiles:
    """The names of grouping rules and name mappings beside the publication; None where no file was given."""

    grouping_rules: str | None = None
    name_mappings: str | None = None


def missing(agents: Agents, sink: Component, setting: str, option: str) -> str:
    """Returns what is wrong with a sink without its file: where the agent has it, and by which option to name it."""
    where = next((each.value for each in _of_interceptors(agents, sink) if each.name.endswith(f".{setting}")), None)
    found = f" (the agent reads {where})" if where else ""
    return f"the file is needed: give it by {option} FILE{found}"


def decisions(agents: Agents, sinks: Iterable[Component], files: RuleFiles, drafts: Iterable[Draft]) -> Iterator[str]:
    """Yields what the agent's file leaves open about grouping rules and name mappings."""
    used = {name for each in drafts for name in each.files}
    asked = (
        ("--grouping", "enable_grouping", files.grouping_rules),
        ("--mappings", "enable_name_mappings", files.name_mappings),
    )
    for option, flag, given in asked:
        if given is not None and given not in used:
            yield f"whether {option} is intended: no Kafka sink says {flag} = true, so its file is left out"
    if files.grouping_rules in used and not any(_encodes(agents, sink) for sink in sinks):
        yield (
            "names of entities that no grouping rule matches: Cygnus joined id and type by _, which "
            "`compat: cygnus-2.19` keeps; without it they are named as without rules"
        )


def _encodes(agents: Agents, sink: Component) -> bool:
    """Whether the interceptor joins id and type as the sink does."""
    return any(
        each.name.endswith(".enable_encoding") and each.value == "true" for each in _of_interceptors(agents, sink)
    )


def _of_interceptors(agents: Agents, sink: Component) -> Iterator[Parameter]:
    for source in agents.sources_of(sink):
        yield from (each for each in source.parameters if each.name.startswith("interceptors."))


KAFKA_CONNECTION = "kafka_default"
DEFAULT_SERVICE = "default"
"""What Cygnus calls the service of notifications that name none."""

_NAMING = {"NGSIKafkaSink": "cygnus", "OrionKafkaSink": "cygnus-legacy"}
_NAMES_OF_TODAY = re.compile(r"(?:1\.[1-9][0-9]|[23]\.[0-9]{1,2})(?:\.[0-9]{1,2})?")
_ILLEGAL = re.compile(r"[^a-z0-9]+")


def import_agent(
    text: str, *, files: RuleFiles | None = None, services: Sequence[str] = (), release: str | None = None
) -> ImportResult:
    """Returns the publications that do what the Kafka sinks of a Flume configuration did.

    Args:
        text: the agent's properties file.
        files: grouping rules and name mappings.
        services: the services to publish, one publication for each; without any the agent's default service.
        release: of Cygnus, where it is older than 1.10 and its topics had other names.

    Raises:
        ConfigurationError: the file isn't one of properties, or has no Kafka sink of Cygnus.
    """
    agents = read_agents(parse_properties(text))
    sinks = [sink for sink in agents.of_kind("sinks") if sink.class_name in _NAMING and sink.listed]
    if not sinks:
        raise ConfigurationError(
            "the file lists no sink of the class NGSIKafkaSink",
            next_step="name the agent's configuration, such as agent_1.conf, and check that `<agent>.sinks` lists it",
        )
    return _Import(agents, sinks, files or RuleFiles(), _different(services), release).result()


def _different(services: Sequence[str]) -> tuple[str, ...]:
    """Returns the services without those that brokers take for the same, which know no upper case there."""
    found: dict[str, str] = {}
    for service in services:
        found.setdefault(service.lower(), service)
    return tuple(found.values())


class _Import:
    def __init__(
        self, agents: Agents, sinks: list[Component], files: RuleFiles, services: tuple[str, ...], release: str | None
    ) -> None:
        self._agents = agents
        self._sinks = sinks
        self._files = files
        self._services = services
        self._release = release
        self._wrong: dict[str, str] = {}
        self._decisions: dict[str, None] = {}
        self._connections: dict[str, str] = {}
        self._names: set[str] = set()

    def result(self) -> ImportResult:
        drafts = tuple(draft(flow) for sink in self._sinks for flow in self._flows(sink))
        self._decide(
            "the context broker's address: Cygnus was notified by it and does not know it",
            "how often the broker is read: `schedule`, at first every 5 minutes",
        )
        if self._release is None:
            self._decide("the release: up to 1.9 Cygnus had other names; name an older one by `--cygnus-version`")
        self._decide(*decisions(self._agents, self._sinks, self._files, drafts))
        explained = explain_parameter(self._agents, self._sinks, self._wrong)
        connections = (_add_broker(), *(_add_kafka(name, brokers) for brokers, name in self._connections.items()))
        return ImportResult(drafts, tuple(explained), connections, tuple(self._decisions))

    @property
    def _older_release(self) -> str | None:
        """The release, unless its names are those of today."""
        return None if self._release is not None and _NAMES_OF_TODAY.fullmatch(self._release) else self._release

    def _decide(self, *sentences: str) -> None:
        self._decisions.update(dict.fromkeys(sentences))

    def _flows(self, sink: Component) -> list[Flow]:
        parameters, wrong = read_parameters(sink)
        self._wrong.update(wrong)
        services, known = self._services_of(sink)
        return [
            Flow(
                name=self._name(sink, service if len(services) > 1 else ""),
                sink=f"{sink.agent}.sinks.{sink.name}",
                service=service,
                service_known=known,
                naming=_NAMING[sink.class_name],
                release=self._older_release,
                grouping_rules=self._grouping_rules(sink, parameters),
                name_mappings=self._name_mappings(sink, parameters),
                connection=self._connection(parameters.broker_list),
                parameters=parameters,
            )
            for service in services
        ]

    def _services_of(self, sink: Component) -> tuple[tuple[str, ...], bool]:
        if self._services:
            return self._services, True
        named = [source.value("handler.default_service") for source in self._agents.sources_of(sink)]
        self._decide("the services: Cygnus took them from each notification; name each by `--service`")
        default = next((name for name in named if name), DEFAULT_SERVICE)
        self._decide(_about_the_default_tenant(default))
        return (default,), False

    def _name(self, sink: Component, service: str) -> str:
        same = [other for other in self._sinks if other.name == sink.name]
        parts = ((sink.agent,) if len(same) > 1 else ()) + (sink.name, service)
        wanted = _ILLEGAL.sub("-", "-".join(filter(None, parts)).lower()).strip("-") or "cygnus"
        names = chain((wanted,), (f"{wanted}-{number}" for number in count(2)))
        free = next(name for name in names if name not in self._names)
        self._names.add(free)
        return free

    def _grouping_rules(self, sink: Component, parameters: SinkParameters) -> str | None:
        if not parameters.enable_grouping:
            return None
        return self._file(sink, "enable_grouping", "grouping_rules_conf_file", "--grouping", self._files.grouping_rules)

    def _name_mappings(self, sink: Component, parameters: SinkParameters) -> str | None:
        if not parameters.enable_name_mappings:
            return None
        given = self._files.name_mappings
        return self._file(sink, "enable_name_mappings", "name_mappings_conf_file", "--mappings", given)

    def _file(self, sink: Component, flag: str, setting: str, option: str, given: str | None) -> str | None:
        if given is None:
            self._wrong[f"{sink.agent}.sinks.{sink.name}.{flag}"] = missing(self._agents, sink, setting, option)
        return given

    def _connection(self, brokers: str) -> str:
        number = len(self._connections) + 1
        return self._connections.setdefault(brokers, KAFKA_CONNECTION if number == 1 else f"kafka_{number}")


def _about_the_default_tenant(service: str) -> str:
    mappings = json.dumps({"serviceMappings": [{"newService": service}]})
    return (
        f"whether {service!r} is a service of the broker: Cygnus called notifications without a Fiware-Service so; "
        f'for these write `service: ""`, and name mappings {mappings}, which keep the names of topics'
    )


def _add_broker() -> str:
    return (
        f"airflow connections add {SOURCE_CONNECTION} --conn-type http --conn-host orion.example.org --conn-port 1026"
    )


def _add_kafka(name: str, brokers: str) -> str:
    extra = json.dumps({"bootstrap.servers": brokers})
    return f"airflow connections add {name} --conn-type kafka --conn-extra {shlex.quote(extra)}"


_OF_PUBLICATIONS = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What the agent's own file does not contain: its grouping rules, its name mappings, the services, its release."""

    grouping: Path | None = None
    mappings: Path | None = None
    services: tuple[str, ...] = ()
    release: str | None = None


def from_cygnus(agent: Path, request: ImportRequest) -> Imported:
    """Returns the publications of a Cygnus agent, checked.

    Raises:
        ConfigurationError: a file can't be read, or is no agent's with a Kafka sink.
    """
    given = _given(request.grouping, request.mappings)
    names = (path.name if path else None for path in (request.grouping, request.mappings))
    text = decode_properties(read_bytes(agent))
    result = import_agent(text, files=RuleFiles(*names), services=request.services, release=request.release)
    used = {name for draft in result.drafts for name in draft.files}
    beside = {name: content for name, content in given.items() if name in used}
    return check_import(result, beside)


def _given(*paths: Path | None) -> dict[str, bytes]:
    """Returns the contents of the files by the names that they get beside the publications."""
    contents: dict[str, bytes] = {}
    for path in paths:
        if path is None:
            continue
        if path.name in contents:
            raise ConfigurationError(
                f"--grouping and --mappings both name a file {path.name}",
                next_step="rename one of them: they are written to one folder",
            )
        if path.suffix in _OF_PUBLICATIONS:
            raise ConfigurationError(
                f"{path.name} would be read as a publication", next_step="rename it, such as to .json"
            )
        contents[path.name] = read_bytes(path)
    return contents
