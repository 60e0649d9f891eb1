"""One expectation as data: what must hold, on which frame, and how grave it is when it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

Severity = Literal["critical", "warning", "info"]
Frame = Literal["entities", "summary"]


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
