"""The files of grouping rules and name mappings that an agent's sinks need, and what a person has to say about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from contexture.migration.agents import Agents, Component, Parameter
from contexture.migration.drafts import Draft


@dataclass(frozen=True, slots=True)
class Files:
    """The names of grouping rules and name mappings beside the publication; None where no file was given."""

    grouping_rules: str | None = None
    name_mappings: str | None = None


def missing(agents: Agents, sink: Component, setting: str, option: str) -> str:
    """What is wrong with a sink that wants a file which wasn't given: where the agent has it, and how to give it."""
    where = next((each.value for each in _of_interceptors(agents, sink) if each.name.endswith(f".{setting}")), None)
    told = f" (the agent reads {where})" if where else ""
    return f"the file is needed: give it by {option} FILE{told}"


def decisions(agents: Agents, sinks: Iterable[Component], files: Files, drafts: Iterable[Draft]) -> Iterator[str]:
    """What the agent's file leaves open about grouping rules and name mappings."""
    used = {name for each in drafts for name in each.files}
    asked = (
        ("--grouping", "enable_grouping", files.grouping_rules),
        ("--mappings", "enable_name_mappings", files.name_mappings),
    )
    for option, flag, given in asked:
        if given is not None and given not in used:
            yield f"whether {option} is meant: no Kafka sink says {flag} = true, so its file is left out"
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
