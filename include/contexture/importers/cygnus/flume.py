"""A Flume configuration: agents with their sources, channels and sinks, each with its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contexture.importers.properties_file import JavaProperty

_KINDS = ("sources", "channels", "sinks", "sinkgroups")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a component: its name there, its value, and where the file says it."""

    name: str
    value: str
    origin: JavaProperty


@dataclass(frozen=True, slots=True)
class Component:
    """A source, channel, sink or sink group.

    Attributes:
        agent: the agent's name.
        kind: `sources`, `channels`, `sinks` or `sinkgroups`.
        name: its own.
        listed: the agent lists it; Flume runs no other.
        parameters: in the file's order; of those that are there twice only the last, which counts.
    """

    agent: str
    kind: str
    name: str
    listed: bool
    parameters: tuple[Parameter, ...]

    def value(self, name: str) -> str | None:
        """Returns the value of a parameter, without white space around it; None where it isn't set."""
        return next((parameter.value for parameter in self.parameters if parameter.name == name), None)

    def words(self, name: str) -> tuple[str, ...]:
        return tuple((self.value(name) or "").split())

    @property
    def class_name(self) -> str:
        """The last part of its type: `NGSIKafkaSink`."""
        return (self.value("type") or "").rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Agents:
    """Everything a file says.

    Attributes:
        components: in the order of their first mention.
        lists: the properties that list components.
        repeated: properties that a later one of the same key replaces.
        strange: properties that belong to no component.
    """

    components: tuple[Component, ...]
    lists: tuple[JavaProperty, ...]
    repeated: tuple[JavaProperty, ...]
    strange: tuple[JavaProperty, ...]

    def of_kind(self, kind: str) -> Iterator[Component]:
        return (component for component in self.components if component.kind == kind)

    def channel(self, sink: Component) -> str | None:
        return sink.value("channel")

    def sources_of(self, sink: Component) -> list[Component]:
        """Returns the sources that feed a sink's channel."""
        channel = self.channel(sink)
        return [
            source
            for source in self.of_kind("sources")
            if source.agent == sink.agent and channel in source.words("channels")
        ]


def read_agents(properties: Sequence[JavaProperty]) -> Agents:
    last = {each.key: each for each in properties}
    counting = [each for each in properties if last[each.key] is each]
    listing = [each for each in counting if _lists(each.key)]
    listed = {(*each.key.split("."), name) for each in listing for name in each.value.split()}
    found: dict[tuple[str, str, str], list[Parameter]] = {}
    strange = []
    for each in counting:
        parts = each.key.split(".", 3)
        if _lists(each.key):
            continue
        if len(parts) < 4 or parts[1] not in _KINDS:  # agent, kind, name, parameter
            strange.append(each)
            continue
        agent, kind, name, parameter = parts
        found.setdefault((agent, kind, name), []).append(Parameter(parameter, each.value.strip(), each))
    return Agents(
        tuple(Component(*key, key in listed, tuple(parameters)) for key, parameters in found.items()),
        tuple(listing),
        tuple(each for each in properties if last[each.key] is not each),
        tuple(strange),
    )


def _lists(key: str) -> bool:
    return key.count(".") == 1 and key.rpartition(".")[2] in _KINDS
