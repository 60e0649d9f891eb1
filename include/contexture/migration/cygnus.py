"""From a Cygnus agent to publications: which sinks, which services, which connections."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count

from contexture.errors import ConfigurationError
from contexture.migration.agents import Agents, Component, read_agents
from contexture.migration.drafts import SOURCE_CONNECTION, Draft, Flow, draft
from contexture.migration.explanations import Explained, explain
from contexture.migration.java_properties import parse_properties
from contexture.migration.parameters import SinkParameters, read_parameters
from contexture.migration.rule_files import Files, decisions, missing

KAFKA_CONNECTION = "kafka_default"
DEFAULT_SERVICE = "default"
"""What Cygnus calls the service of notifications that name none."""

_NAMING = {"NGSIKafkaSink": "cygnus", "OrionKafkaSink": "cygnus-legacy"}
_NAMES_OF_TODAY = re.compile(r"(?:1\.[1-9][0-9]|[23]\.[0-9]{1,2})(?:\.[0-9]{1,2})?")
_ILLEGAL = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Migration:
    """What an agent becomes.

    Attributes:
        drafts: the publications, by sink and service.
        explained: what becomes of each line of the file.
        connections: the commands that make the connections the publications name.
        decisions: what the file can't tell, and a person must.
    """

    drafts: tuple[Draft, ...]
    explained: tuple[Explained, ...]
    connections: tuple[str, ...]
    decisions: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether every value of the file could be kept."""
        return not any(each.outcome == "wrong" for each in self.explained)


def migrate(
    text: str, *, files: Files | None = None, services: Sequence[str] = (), release: str | None = None
) -> Migration:
    """The publications that do what the Kafka sinks of a Flume configuration did.

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
            next_step="name the agent's configuration, such as agent_1.conf, and see that `<agent>.sinks` lists it",
        )
    return _Plan(agents, sinks, files or Files(), _different(services), release).migration()


def _different(services: Sequence[str]) -> tuple[str, ...]:
    """The services without those that brokers take for the same, which know no upper case there."""
    found: dict[str, str] = {}
    for service in services:
        found.setdefault(service.lower(), service)
    return tuple(found.values())


class _Plan:
    """One migration on its way."""

    def __init__(
        self, agents: Agents, sinks: list[Component], files: Files, services: tuple[str, ...], release: str | None
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

    def migration(self) -> Migration:
        drafts = tuple(draft(flow) for sink in self._sinks for flow in self._flows(sink))
        self._decide(
            "the context broker's address: Cygnus was notified by it and doesn't know it",
            "how often the broker is read: `schedule`, at first every 5 minutes",
        )
        if self._release is None:
            self._decide("the release: up to 1.9 Cygnus had other names; tell an older one by `--cygnus-version`")
        self._decide(*decisions(self._agents, self._sinks, self._files, drafts))
        explained = explain(self._agents, self._sinks, self._wrong)
        connections = (_add_broker(), *(_add_kafka(name, brokers) for brokers, name in self._connections.items()))
        return Migration(drafts, tuple(explained), connections, tuple(self._decisions))

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
