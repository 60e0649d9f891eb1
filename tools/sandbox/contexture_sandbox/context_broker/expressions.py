"""The simple query language (`q`, `mq`): `speed>20;dateModified==A..B;!temperature`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import Any

import orjson

from contexture_sandbox.context_broker.answers import Refusal, bad_request
from contexture_sandbox.context_broker.model import DATE_TYPES, StoredEntity
from contexture_sandbox.context_broker.times import parse_time

Comparable = tuple[int, object]
"""The rank of a kind, and a value of it."""
ORDERED_RANKS = frozenset({1, 2, 4})
"""Numbers, texts and times: what can be greater or less."""
MISSING = object()
"""In place of a value that is not there."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Instant(str):
    """A text that is a time."""

    __slots__ = ()


def operand(text: str) -> object:
    """Returns the value of an operand in an expression: a quoted text, a literal, a number, a time, or a text."""
    if len(text) > 1 and text.startswith("'") and text.endswith("'"):
        return text[1:-1]
    if text in {"true", "false", "null"}:
        return {"true": True, "false": False, "null": None}[text]
    if _NUMBER.fullmatch(text):
        return float(text)
    return text if parse_time(text) is None else Instant(text)


def comparable(value: object) -> Comparable:
    """A value with the rank of its kind: only values of one kind compare, as in the broker's database."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (3, value)
    if isinstance(value, int | float):
        return (1, value)
    if isinstance(value, Instant):
        moment = parse_time(value)
        return (2, str(value)) if moment is None else (4, moment)
    return (2, value) if isinstance(value, str) else (5, orjson.dumps(value) if value is not MISSING else b"")


_CLASSES = {
    "[:alpha:]": "a-zA-Z", "[:digit:]": "0-9", "[:alnum:]": "a-zA-Z0-9", "[:upper:]": "A-Z", "[:lower:]": "a-z",
    "[:space:]": r"\s", "[:punct:]": r"!-/:-@\[-`{-~", "[:xdigit:]": "0-9A-Fa-f",
}  # fmt: skip


@lru_cache(maxsize=512)
def posix_pattern(text: str) -> re.Pattern[str] | None:
    """Compiles a POSIX extended regular expression as a broker's database takes it: unanchored, without look-around.

    The pattern is to be used with `search`. None: it is invalid, and matches nothing, as in a broker.
    """
    if "(?" in text:
        return None
    for name, members in _CLASSES.items():
        text = text.replace(name, members)
    try:
        return re.compile(text)
    except re.error:
        return None


BUILTIN_TIMES: dict[str, Callable[[StoredEntity], int | None]] = {
    "dateCreated": lambda entity: entity.created_at_us,
    "dateModified": lambda entity: entity.modified_at_us,
    "dateExpires": lambda entity: entity.expires_at_us,
}
Predicate = Callable[[StoredEntity], bool]
_TERM = re.compile(r"(?P<name>[^=!<>~:;]+)(?P<operator>==|!=|>=|<=|~=|>|<|:)(?P<value>.*)", re.DOTALL)
_SEPARATED = re.compile(r"((?:'[^']*'|[^;'])+)")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Term:
    """One condition. `operator` is "" for existence and "!" for absence."""

    name: str
    operator: str
    value: str = ""

    @property
    def range(self) -> tuple[str, str] | None:
        """The ends of `A..B`."""
        low, dots, high = self.value.partition("..")
        return (low, high) if dots and not self.value.startswith("'") else None


def parse_terms(expression: str, parameter: str = "q") -> tuple[Term, ...]:
    """The conditions of an expression, all of which must hold.

    Raises:
        Refusal: 400, no expression.
    """
    terms = tuple(_term(part.strip(), parameter) for part in _SEPARATED.findall(expression))
    if not terms:
        raise _invalid(parameter)
    return terms


def _invalid(parameter: str) -> Refusal:
    return bad_request(f"invalid character found in URI param /{parameter}/")


def _term(text: str, parameter: str) -> Term:
    found = _TERM.fullmatch(text)
    if found:
        operator = "==" if found["operator"] == ":" else found["operator"]
        return Term(found["name"].strip(), operator, found["value"].strip())
    name = text.removeprefix("!")
    if not name or re.search(r"[=<>~!]", name):
        raise _invalid(parameter)
    return Term(name, "!" if text.startswith("!") else "")


def time_bounds(term: Term) -> tuple[int | None, int | None] | None:
    """For a condition on a builtin time that is an interval: [from, to) in microseconds; None for any other."""
    if term.name not in BUILTIN_TIMES:
        return None
    if term.operator == "==":
        low, high = term.range or (term.value, term.value)
        start, end = parse_time(low), parse_time(high)
        return None if start is None or end is None else (start, end + 1)
    moment = parse_time(term.value)
    if moment is None:
        return None
    bounds: dict[str, tuple[int | None, int | None]] = {
        ">": (moment + 1, None), ">=": (moment, None), "<": (None, moment), "<=": (None, moment + 1),
    }  # fmt: skip
    return bounds.get(term.operator)


def predicate(term: Term, *, of_metadata: bool = False) -> Predicate:
    """The condition as a function of an entity."""
    bounds = None if of_metadata else time_bounds(term)
    if bounds is not None:
        return _within(BUILTIN_TIMES[term.name], *bounds)
    if term.name in BUILTIN_TIMES and term.operator in {"", "!"} and not of_metadata:
        # As observed: existence of a builtin matches nothing, its absence everything.
        absent = term.operator == "!"
        return lambda _entity: absent
    path = _names(term.name)
    look_up = _metadata_value if of_metadata else _attribute_value
    test = _test(term)
    return lambda entity: test(look_up(entity, path))


def _within(moment_of: Callable[[StoredEntity], int | None], start: int | None, end: int | None) -> Predicate:
    def holds(entity: StoredEntity) -> bool:
        moment = moment_of(entity)
        return moment is not None and (start is None or moment >= start) and (end is None or moment < end)

    return holds


def _names(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("'") for part in re.findall(r"'[^']*'|[^.]+", dotted))


def _attribute_value(entity: StoredEntity, path: tuple[str, ...]) -> object:
    if path == ("servicePath",) and "servicePath" not in entity.attributes:
        return entity.service_path
    attribute = entity.attributes.get(path[0])
    if attribute is None:
        return MISSING
    value = attribute.decoded()
    if attribute.type in DATE_TYPES and isinstance(value, str):
        return Instant(value)
    return _inside(value, path[1:])


def _metadata_value(entity: StoredEntity, path: tuple[str, ...]) -> object:
    attribute = entity.attributes.get(path[0])
    if attribute is None:
        return MISSING
    if len(path) == 1:
        return attribute.type
    found = dict(attribute.metadata).get(path[1])
    return MISSING if found is None else _inside(orjson.loads(found)["value"], path[2:])


def _inside(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def _test(term: Term) -> Callable[[object], bool]:
    if term.operator in {"", "!"}:
        absent = term.operator == "!"
        return lambda value: (value is MISSING) == absent
    if term.operator == "~=":
        pattern = posix_pattern(term.value.strip("'"))
        return lambda value: pattern is not None and isinstance(value, str) and pattern.search(value) is not None
    if term.operator in {"==", "!="}:
        return _equality(term)
    return _comparison(term.operator, comparable(operand(term.value)))


def _equality(term: Term) -> Callable[[object], bool]:
    wanted = term.operator == "=="
    if term.range is not None:
        low, high = (comparable(operand(end)) for end in term.range)
        return lambda value: value is not MISSING and _between(low, comparable(value), high) == wanted
    operands = [comparable(operand(part)) for part in re.findall(r"'[^']*'|[^,]+", term.value)]

    def holds(value: object) -> bool:
        values = value if isinstance(value, list) else [value]
        return value is not MISSING and any(comparable(one) in operands for one in values) == wanted

    return holds


def _between(low: Comparable, value: Comparable, high: Comparable) -> bool:
    return low[0] == value[0] == high[0] and bool(low[1] <= value[1] <= high[1])  # type: ignore[operator]


def _comparison(operator: str, limit: Comparable) -> Callable[[object], bool]:
    compare = _COMPARISONS[operator]

    def holds(value: object) -> bool:
        rank, given = comparable(value)
        return rank == limit[0] and rank in ORDERED_RANKS and compare(given, limit[1])

    return holds
