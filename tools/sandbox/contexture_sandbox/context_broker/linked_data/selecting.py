"""Which entities a query selects: type, id, idPattern, attrs, scopeQ, and the conditions of q that are needed here."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from contexture_sandbox.context_broker.linked_data.documents import VALUE_MEMBERS, Document
from contexture_sandbox.context_broker.linked_data.problems import bad_request
from contexture_sandbox.context_broker.times import parse_time

Condition = Callable[[Document], bool]

_TIMES: dict[str, Callable[[Document], int]] = {
    "createdAt": lambda document: document.created_us,
    "modifiedAt": lambda document: document.modified_us,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_TERM = re.compile(r"\(?([A-Za-z0-9_:/.#-]+?)(==|!=|>=|<=|>|<)(.+?)\)?")


def conditions(parameters: Mapping[str, str]) -> list[Condition]:
    """What an entity has to meet.

    Raises:
        Problem: 400, `q` is no expression.
    """
    found: list[Condition] = []
    for name, make in _PARAMETERS.items():
        if parameters.get(name):
            found.append(make(parameters[name]))
    found.extend(_term(text) for text in parameters.get("q", "").split(";") if text)
    return found


def asks_by_time(parameters: Mapping[str, str]) -> bool:
    """Whether `q` has a condition on one of the broker's own times."""
    return any(name in parameters.get("q", "") for name in _TIMES)


def _type(text: str) -> Condition:
    wanted = frozenset(re.split(r"[,|]", text))
    return lambda document: not wanted.isdisjoint(document.types)


def _ids(text: str) -> Condition:
    wanted = frozenset(text.split(","))
    return lambda document: document.id in wanted


def _pattern(text: str) -> Condition:
    pattern = re.compile(text)
    return lambda document: pattern.search(document.id) is not None


def _attributes(text: str) -> Condition:
    # Clause 5.7.2: attrs does not only choose what is shown, entities have to have one of them.
    wanted = text.split(",")
    return lambda document: any(name in document.content for name in wanted)


def _scope(text: str) -> Condition:
    # Clause 4.19: `;` is and, `,` and `|` are or.
    alternatives = [[_scope_pattern(part) for part in both.split(";")] for both in re.split(r"[,|]", text)]
    return lambda document: any(
        all(any(pattern.fullmatch(scope) for scope in document.scopes) for pattern in both) for both in alternatives
    )


def _scope_pattern(text: str) -> re.Pattern[str]:
    """Clause 4.19: `+` is one level, `/#` at the end everything below and the scope itself."""
    levels = [r"[^/]+" if level == "+" else re.escape(level) for level in text.removesuffix("/#").split("/")]
    return re.compile("/".join(levels) + (r"(/.*)?" if text.endswith("/#") else ""))


def _term(text: str) -> Condition:
    found = _TERM.fullmatch(text)
    if found is None:
        raise bad_request("Invalid query", text)
    name, compare, given = found[1], _COMPARISONS[found[2]], found[3]
    if name in _TIMES:
        limit = parse_time(given)
        if limit is None:
            raise bad_request("Invalid query", f"{given} is no time")
        return lambda document: compare(_TIMES[name](document), limit)
    return lambda document: _compared(document.content.get(name), compare, given)


def _compared(attribute: object, compare: Callable[[Any, Any], bool], given: str) -> bool:
    value = next((attribute[m] for m in VALUE_MEMBERS if m in attribute), None) if isinstance(attribute, dict) else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return re.fullmatch(r"-?[0-9.]+", given) is not None and compare(value, float(given))
    return isinstance(value, str) and compare(value, given.strip('"'))


_PARAMETERS: dict[str, Callable[[str], Condition]] = {
    "type": _type,
    "id": _ids,
    "idPattern": _pattern,
    "attrs": _attributes,
    "scopeQ": _scope,
}
