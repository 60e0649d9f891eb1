"""What a rule about events is, and which severity a publication gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

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


class Catalogue:
    """The rules of one kind of source."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._defaults: Mapping[str, Setting] = MappingProxyType({rule.name: rule.default for rule in rules})

    def unknown(self, names: Iterable[str]) -> dict[str, str | None]:
        """The names that no rule has, each with the nearest name that one has (or None)."""
        unknown = (name for name in names if name not in self._defaults)
        return {name: next(iter(get_close_matches(name, self._defaults, 1)), None) for name in unknown}

    def severities(self, settings: Mapping[str, Setting]) -> Mapping[str, Severity]:
        """What a violation of each rule is: the settings over the defaults; rules that are off are absent.

        Raises:
            ConfigurationError: a setting names no rule.
        """
        unknown = self.unknown(settings)
        if unknown:
            raise ConfigurationError(
                f"quality.rules names no such rule: {', '.join(unknown)}",
                next_step=f"use {', '.join(near or 'a name from the list of rules' for near in unknown.values())}",
            )
        merged = {**self._defaults, **settings}
        return {name: setting for name, setting in merged.items() if setting != "off"}
