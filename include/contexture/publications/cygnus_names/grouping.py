"""Grouping rules of Cygnus (up to 2.19): entities that match go to a common destination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.events import ContextIdentity
from contexture.publications.bounded_patterns import BoundedPattern
from contexture.publications.cygnus_names import files
from contexture.publications.cygnus_names.java_regex import compile_java

MEMBER = "grouping_rules"
FIELDS: Mapping[str, str] = {"entityId": "id", "entityType": "type", "servicePath": "service_path"}

VALID, MISSING, EMPTY, EXTRA, NO_SLASH = 0, 1, 2, 3, 4
_REQUIRED = ("fields", "regex", "destination", "fiware_service_path")


@dataclass(frozen=True, slots=True)
class GroupingRule:
    """One rule; `fields` are parts of the identity, joined without a separator for `regex`, which matches the whole."""

    id: int
    fields: tuple[str, ...]
    regex: BoundedPattern
    destination: str
    service_path: str


@dataclass(frozen=True, slots=True)
class GroupingRules:
    """Rules in the order of their file.

    Attributes:
        rules: those that are valid.
        dropped: the numbers (from 1) of invalid ones; only `compat` leaves them out as Cygnus does.
        compat: an absent type counts as the text `null`, as in Cygnus.
    """

    rules: tuple[GroupingRule, ...]
    dropped: tuple[int, ...] = ()
    compat: bool = False

    @classmethod
    def from_json(cls, text: str, *, compat: bool = False) -> GroupingRules:
        """Returns the rules of a file's text.

        Raises:
            ConfigurationError: it is no such file, or a rule is wrong.
        """
        rules, dropped = list[GroupingRule](), list[int]()
        for number, item in enumerate(files.parse(text, MEMBER), start=1):
            if rule := _rule(number, item, compat):
                rules.append(rule)
            else:
                dropped.append(number)
        return cls(tuple(rules), tuple(dropped), compat)

    def find(self, identity: ContextIdentity) -> GroupingRule | None:
        for rule in self.rules:
            if rule.regex.fullmatch("".join(self._value(identity, field) for field in rule.fields)):
                return rule
        return None

    def _value(self, identity: ContextIdentity, field: str) -> str:
        value: str = getattr(identity, field)
        return "null" if self.compat and field == "type" and not value else value


def check_grouping_rule(rule: Mapping[str, object]) -> int:
    """Cygnus' code: 0 valid, 1 a member is missing, 2 one is empty, 3 there are others, 4 the path has no slash."""
    if any(name not in rule for name in _REQUIRED):
        return MISSING
    if any(not rule[name] for name in _REQUIRED):
        return EMPTY
    if not str(rule["fiware_service_path"]).startswith("/"):
        return NO_SLASH
    return EXTRA if set(rule) - {"id", *_REQUIRED} else VALID


def _rule(number: int, item: object, compat: bool) -> GroupingRule | None:
    if not isinstance(item, dict):
        raise _wrong(number, "is no object")
    code = check_grouping_rule(item)
    # Only the REST interface of Cygnus refuses members that it doesn't know.
    if code not in {VALID, EXTRA}:
        if compat:
            return None
        raise _wrong(number, f"{_reason(item, code)} (code {code})")
    if type(item.get("id")) is not int:
        raise _wrong(number, "has no whole number as id")
    regex, destination, path = (item[name] for name in _REQUIRED[1:])
    if not (isinstance(regex, str) and isinstance(destination, str) and isinstance(path, str)):
        raise _wrong(number, "has a regex, destination or path that is not text")
    return GroupingRule(item["id"], _fields(number, item["fields"], compat), compile_java(regex), destination, path)


def _reason(rule: Mapping[str, object], code: int) -> str:
    if code == MISSING:
        return f"lacks {', '.join(name for name in _REQUIRED if name not in rule)}"
    if code == EMPTY:
        return f"has no content in {', '.join(name for name in _REQUIRED if not rule[name])}"
    return f"has the path {rule['fiware_service_path']!r}, which has no leading slash"


def _fields(number: int, listed: object, compat: bool) -> tuple[str, ...]:
    if not isinstance(listed, list):
        raise _wrong(number, "has fields that are not a list")
    unknown = [name for name in listed if not isinstance(name, str) or name not in FIELDS]
    if unknown and not compat:
        raise _wrong(number, f"names the field {unknown[0]!r}; known are {', '.join(FIELDS)}")
    return tuple(FIELDS[name] for name in listed if name not in unknown)


def _wrong(number: int, why: str) -> ConfigurationError:
    return ConfigurationError(f"grouping rule {number} {why}", next_step="correct it in the file of grouping rules")
