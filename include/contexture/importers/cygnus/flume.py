r"""A Flume configuration: agents with their sources, channels and sinks, each with its parameters.

Follows `java.util.Properties.load`: `#` and `!` begin a comment, an odd number of backslashes at a line's end continues
it on the next one (whose leading white space is dropped), `\uXXXX` is a UTF-16 unit, `\t`, `\n`, `\f` and `\r` are
themselves, and a backslash before anything else is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contexture.errors import ConfigurationError

_BLANK = " \t\f"
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_UNIT = re.compile(r"u[0-9A-Fa-f]{4}")
_LETTERS = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}


@dataclass(frozen=True, slots=True)
class JavaProperty:
    """One property: key, value, and the number of the line it begins on, counted from 1."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[JavaProperty]:
    r"""Parses the properties of a file, in its order; one that is there twice is returned twice.

    Raises:
        ConfigurationError: `\u` isn't followed by four hexadecimal digits.
    """
    return [_property(line, number) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    parts: list[str] = []
    first = 0
    for number, natural in enumerate(_LINE_ENDS.split(text), start=1):
        line = natural.lstrip(_BLANK)
        if not parts:
            if not line or line[0] in "#!":
                continue
            first = number
        if (len(line) - len(line.rstrip("\\"))) % 2 == 1:
            # A backslash alone begins nothing: the next line may be blank, or a comment.
            parts += [line[:-1]] if parts or line != "\\" else []
        else:
            yield first, "".join((*parts, line))
            parts = []
    if parts:
        yield first, "".join(parts)


def _property(line: str, number: int) -> JavaProperty:
    match = _KEY.match(line)
    # The pattern matches everything, also nothing.
    key, rest = (match[1], line[match.end() :]) if match else (line, "")
    return JavaProperty(_unescaped(key, number), _unescaped(rest, number), number)


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] != "u":
            return _LETTERS.get(escape, escape)
        if not _UNIT.fullmatch(escape):
            raise ConfigurationError(
                f"line {line}: \\u is not followed by four hexadecimal digits", next_step="correct the escape"
            )
        return chr(int(escape[1:], 16))

    units = _ESCAPE.sub(replaced, text)
    # Two escapes may be the halves of one character.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
