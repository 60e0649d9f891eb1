"""One expectation as data: what must hold, on which frame, and how grave it is when it does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

Severity = Literal["critical", "warning", "info"]
Frame = Literal["entities", "attributes", "structures", "summary"]

UNIQUE = "ExpectColumnValuesToBeUnique"
NOT_NULL = "ExpectColumnValuesToNotBeNull"
IN_SET = "ExpectColumnValuesToBeInSet"
BETWEEN = "ExpectColumnValuesToBeBetween"
REGEX = "ExpectColumnValuesToMatchRegex"


@dataclass(frozen=True, slots=True)
class Expected:
    """An expectation of a publication.

    Attributes:
        name: what people and documents call it, unique in its suite.
        severity: critical: nothing is sent when it fails; warning: sent and marked; info: shown.
        on: the frame it is checked on.
        kind: class name in `great_expectations.expectations`.
        kwargs: the class's arguments.
        description: the sentence that must be true, for people.
        where: SQL condition that selects rows of the frame.
        own: written by the publication's author, so it may be wrong in itself.
    """

    name: str
    severity: Severity
    on: Frame
    kind: str
    kwargs: Mapping[str, JsonValue] = field(default_factory=dict)
    description: str = ""
    where: str | None = None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Columns:
    """Makes expectations about single columns of one frame."""

    frame: Frame

    def critical(self, name: str, kind: str, column: str, description: str, **kwargs: JsonValue) -> Expected:
        """One that stops a run."""
        return self.expected("critical", name, kind, column, description, **kwargs)

    def warning(self, name: str, kind: str, column: str, description: str, **kwargs: JsonValue) -> Expected:
        """One that marks a run."""
        return self.expected("warning", name, kind, column, description, **kwargs)

    def expected(
        self, severity: Severity, name: str, kind: str, column: str, description: str, **kwargs: JsonValue
    ) -> Expected:
        """One of any severity."""
        return Expected(name, severity, self.frame, kind, {"column": column, **kwargs}, description)


def limits(minimum: float | None, maximum: float | None) -> dict[str, JsonValue]:
    """The arguments of a range; open ends are left out."""
    ends: Iterable[tuple[str, JsonValue]] = (("min_value", minimum), ("max_value", maximum))
    return {name: value for name, value in ends if value is not None}


def in_words(ends: Mapping[str, JsonValue]) -> str:
    """The arguments of a range, as people say it."""
    match _plain(ends.get("min_value")), _plain(ends.get("max_value")):
        case None, maximum:
            return f"at most {maximum}"
        case minimum, None:
            return f"at least {minimum}"
        case minimum, maximum:
            return f"between {minimum} and {maximum}"


def _plain(number: JsonValue) -> JsonValue:
    return int(number) if isinstance(number, float) and number.is_integer() else number
