"""The part of a publication that says which data may pass, and what fails a run."""

from __future__ import annotations

import difflib
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from contexture.publications.fields import Count, Flag, Number, Positive, Section, Share, Text
from contexture.publications.rule_names import RULE_NAMES
from contexture.publications.source import Names


def _as_severity(value: object) -> object:
    # YAML 1.1 readers turn the word `off` into False.
    return "off" if value is False else value


SeverityWord = Literal["off", "warning", "error"]
Severity = Annotated[SeverityWord, BeforeValidator(_as_severity, json_schema_input_type=SeverityWord)]


def _check_rule(name: str) -> str:
    if name in RULE_NAMES:
        return name
    near = difflib.get_close_matches(name, RULE_NAMES, n=1)
    suggestion = f"did you mean {near[0]!r}? " if near else ""
    raise ValueError(f"no rule is called {name!r}; {suggestion}there are {', '.join(RULE_NAMES)}")


RuleName = Annotated[StrictStr, AfterValidator(_check_rule), Field(json_schema_extra={"enum": list(RULE_NAMES)})]


class Range(Section):
    """The numbers an attribute may have; either end may be open."""

    minimum: Number | None = Field(None, description="Smallest value that passes")
    maximum: Number | None = Field(None, description="Largest value that passes")

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.minimum is None and self.maximum is None:
            raise ValueError("a range needs a minimum, a maximum or both")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}: nothing could pass")
        return self


Scalar = StrictStr | StrictBool | StrictInt | StrictFloat

ExpectationName = Annotated[StrictStr, Field(pattern=r"^(?:expect_[a-z0-9_]+|Expect[A-Za-z0-9]+)$")]


class Expectation(Section):
    """A Great Expectations expectation by its name and arguments."""

    name: ExpectationName = Field(description="Its name, such as expect_column_values_to_be_between")
    on: Literal["entities", "attributes", "structures"] = Field(
        "entities",
        description="What it has a row for: each accepted entity, each attribute of one, or each structure",
    )
    where: Text | None = Field(None, description="SQL condition that selects rows of the frame")
    kwargs: dict[str, JsonValue] = Field(
        {}, description="Arguments of the expectation; severity is critical, warning or info"
    )

    @model_validator(mode="after")
    def _check_severity(self) -> Self:
        severity = self.kwargs.get("severity", "critical")
        if severity not in {"critical", "warning", "info"}:
            raise ValueError(f"{severity!r} is no severity: critical stops a run, warning and info don't")
        return self


class Quality(Section):
    """Severities of row rules, limits of the whole snapshot, and further expectations."""

    rules: dict[RuleName, Severity] = Field({}, description="Severity of row rules by name: off, warning or error")
    expectations: tuple[Expectation, ...] = Field((), description="Further Great Expectations")
    max_quarantined_share: Share = Field(
        0.05, description="A run with a larger quarantined share fails before it sends"
    )
    minimum_entities: Count = Field(1, description="A full read of fewer entities or structures fails before it sends")
    maximum_entities: Positive | None = Field(
        None, description="A full read of more entities or structures fails before it sends"
    )
    required_attributes: Names = Field(
        (),
        description="Attributes that every entity must have; one without fails the run before it sends, and with "
        "rules: {required-attr: error} goes to quarantine instead",
    )
    attribute_types: dict[str, Text] = Field({}, description="NGSI type that an attribute must have, by name")
    ranges: dict[str, Range] = Field({}, description="Numbers that an attribute may have, by name")
    fresh_within_seconds: Positive | None = Field(None, description="Largest age of the newest change")
    allowed_values: dict[str, tuple[Scalar, ...]] = Field({}, description="Values that an attribute may have, by name")
    stale_after_seconds: dict[str, Positive] = Field(
        {}, description="Largest age of an entity's newest time, by entity type; others: fresh_within_seconds"
    )
    syntax: Literal["auto", "ngsiv2", "ngsi-ld"] = Field(
        "auto", description="Whose rules names follow; auto: those of the interface that is read"
    )
    coerce_numbers: Flag = Field(
        False,
        description="A text that is a JSON number is sent as that number if the attribute has a number's type",
    )
    allow_intervals: Flag = Field(False, description="A DateTime may be an interval, start/end")
    models: dict[str, Text] = Field(
        {}, description="JSON Schema that entities of a type must fit, by type: a path from this file's folder"
    )
    model_documents: SkipJsonSchema[dict[str, str]] = Field({}, description="Contents of models; never written")
