"""Rules about events: the severity that a publication gives each, and the violations they report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, get_args

import orjson

from contexture.errors import ConfigurationError

Severity = Literal["error", "warning"]
Setting = Literal["off", "warning", "error"]
Scope = Literal["entity", "structure", "record", "snapshot"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        name: its key in `quality.rules`.
        default: what a violation does unless the publication says otherwise: `error` quarantines the event,
            `warning` publishes and counts it.
        description: what it asks for, in one line.
        scope: where it is checked: on one entity or structure, on the finished record, or on the whole snapshot.
    """

    name: str
    default: Setting
    description: str
    scope: Scope = "entity"


def parse_rules(scope: Scope, table: str) -> tuple[Rule, ...]:
    """Returns the rules of a table, whose lines are a name, a default and a description.

    >>> parse_rules("entity", "size error the body fits in a record")
    (Rule(name='size', default='error', description='the body fits in a record', scope='entity'),)
    """
    settings: dict[str, Setting] = {setting: setting for setting in get_args(Setting)}
    rows = (line.split(maxsplit=2) for line in table.strip().splitlines())
    return tuple(Rule(name, settings[default], description, scope) for name, default, description in rows)


class Catalogue:
    """The rules of one kind of source."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._defaults: Mapping[str, Setting] = MappingProxyType({rule.name: rule.default for rule in rules})

    def severities(self, settings: Mapping[str, Setting]) -> Mapping[str, Severity]:
        """Returns what a violation of each rule is: the settings over the defaults; rules that are off are absent.

        Raises:
            ConfigurationError: a setting names no rule.
        """
        unknown = [name for name in settings if name not in self._defaults]
        if unknown:
            near = [next(iter(get_close_matches(name, self._defaults, 1)), None) for name in unknown]
            raise ConfigurationError(
                f"quality.rules names no such rule: {', '.join(unknown)}",
                next_step=f"use {', '.join(name or 'a name from the list of rules' for name in near)}",
            )
        merged = {**self._defaults, **settings}
        return {name: setting for name, setting in merged.items() if setting != "off"}


_NAME_CHARACTERS = 50
_VALUE_CHARACTERS = 60
_URN_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that one event breaks.

    Attributes:
        rule: the rule's name.
        severity: `error` quarantines the event, `warning` is counted.
        message: what is wrong; holds at most 120 characters of data.
    """

    rule: str
    severity: Severity
    message: str


class RuleFindings:
    """The violations of one event, in the order they were found, without those of rules that are off."""

    __slots__ = ("_severities", "violations")

    def __init__(self, severities: Mapping[str, Severity]) -> None:
        self._severities = severities
        self.violations: list[Violation] = []

    def includes(self, rule: str) -> bool:
        """Whether violations of a rule are counted; what is off need not be checked."""
        return rule in self._severities

    def add(self, rule: str, message: str) -> None:
        """Records a violation, unless its rule is off."""
        severity = self._severities.get(rule)
        if severity is not None:
            self.violations.append(Violation(rule, severity, message))

    def refuse(self, rule: str, message: str) -> None:
        """Records an error that no setting can switch off, because there would be nothing to send."""
        self.violations.append(Violation(rule, "error", message))


def violation_subject(name: str) -> str:
    """Returns a name as messages show it: quoted, printable, 50 characters at most."""
    return _quoted(name, _NAME_CHARACTERS)


def abbreviate(value: object) -> str:
    """Returns a value as messages show it: on one line, printable, 60 characters at most."""
    if isinstance(value, str):
        return _quoted(value, _VALUE_CHARACTERS)
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return _clipped(orjson.dumps(value).decode(), _VALUE_CHARACTERS)


def named_urn(urn: str) -> str:
    """Returns a URN as messages show it: quoted, printable, 120 characters at most, which few of them have."""
    return _quoted(urn, _URN_CHARACTERS)


def _quoted(text: str, limit: int) -> str:
    return _clipped(repr(text[:limit]), limit)


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
