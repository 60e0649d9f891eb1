"""The section `quality`: which data may pass, and what fails a run.

A test holds the table against the version that is installed.

The rules themselves are in `contexture.sources.ngsi.rules` and `contexture.sources.sdmx.rules`, which are built on this
package; a test holds the names equal.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

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

from contexture.publications.fields import (
    ChangesNoRecord,
    ChangesRecords,
    Count,
    Flag,
    Number,
    Positive,
    PublicationModel,
    Share,
    Text,
)
from contexture.publications.source import Names

_QUARANTINES = ChangesNoRecord("what is quarantined")
_OUTBOX_ID = ChangesNoRecord("what is quarantined; outbox ids cover it")
_STOPS = ChangesNoRecord("what stops a run")

DEFAULT_MINIMUM: Final = 1
"""The entities or structures that a source has at least, where a publication names no number."""

_BOTH = ChangesNoRecord("what is quarantined or stops a run")

COMMON: Final = frozenset({"severity", "notes", "mostly"})
"""Arguments that any of them may be given; `mostly`: what share of rows has to hold."""

_RANGE: Final = "min_value max_value"
_STRICT: Final = f"{_RANGE} strict_min strict_max"
_PAIR: Final = "column_A column_B"

# What expectations must be given, and what they may be given besides, with their names without `Expect`.
_TABLE: Final = {
    ("column value_set", ""): (
        "ColumnDistinctValuesToBeInSet ColumnDistinctValuesToContainSet ColumnDistinctValuesToEqualSet "
        "ColumnValuesToBeInSet ColumnValuesToNotBeInSet"
    ),
    ("column", f"partition_object threshold internal_weight_holdout tail_weight_holdout bucketize_data {_RANGE}"): (
        "ColumnKLDivergenceToBeLessThan"
    ),
    ("column", _STRICT): (
        "ColumnMaxToBeBetween ColumnMeanToBeBetween ColumnMedianToBeBetween ColumnMinToBeBetween "
        "ColumnProportionOfNonNullValuesToBeBetween ColumnProportionOfUniqueValuesToBeBetween "
        "ColumnStdevToBeBetween ColumnSumToBeBetween ColumnUniqueValueCountToBeBetween "
        "ColumnValueLengthsToBeBetween ColumnValuesToBeBetween"
    ),
    ("column value_set", "ties_okay"): "ColumnMostCommonValueToBeInSet",
    (_PAIR, "or_equal ignore_row_if"): "ColumnPairValuesAToBeGreaterThanB",
    (_PAIR, "ignore_row_if"): "ColumnPairValuesToBeEqual",
    (f"{_PAIR} value_pairs_set", "ignore_row_if"): "ColumnPairValuesToBeInSet",
    ("column quantile_ranges", "allow_relative_error"): "ColumnQuantileValuesToBeBetween",
    ("column", "column_index"): "ColumnToExist",
    ("column type_", ""): "ColumnTypeToBe ColumnValuesToBeOfType",
    ("column value", ""): "ColumnValueLengthsToEqual",
    ("column threshold double_sided", ""): "ColumnValueZScoresToBeLessThan",
    ("column", ""): (
        "ColumnValuesToBeDateutilParseable ColumnValuesToBeJsonParseable ColumnValuesToBeNull "
        "ColumnValuesToBeUnique ColumnValuesToNotBeNull"
    ),
    ("column", "strictly"): "ColumnValuesToBeDecreasing ColumnValuesToBeIncreasing",
    ("column", "type_list"): "ColumnValuesToBeInTypeList",
    ("column json_schema", ""): "ColumnValuesToMatchJsonSchema",
    ("column like_pattern", "escape"): "ColumnValuesToMatchLikePattern ColumnValuesToNotMatchLikePattern",
    ("column like_pattern_list", "match_on escape"): "ColumnValuesToMatchLikePatternList",
    ("column", "regex"): "ColumnValuesToMatchRegex",
    ("column regex_list", "match_on"): "ColumnValuesToMatchRegexList",
    ("column strftime_format", ""): "ColumnValuesToMatchStrftimeFormat",
    ("column", "method multiplier"): "ColumnValuesToNotBeOutliers",
    ("column like_pattern_list", "escape"): "ColumnValuesToNotMatchLikePatternList",
    ("column regex", ""): "ColumnValuesToNotMatchRegex",
    ("column regex_list", ""): "ColumnValuesToNotMatchRegexList",
    ("column_list", "ignore_row_if"): (
        "CompoundColumnsToBeUnique MulticolumnValuesToBeEqual SelectColumnValuesToBeUniqueWithinRecord"
    ),
    ("column_list sum_total", "ignore_row_if"): "MulticolumnSumToEqual",
    ("column column_list", "ignore_row_if"): "MulticolumnValuesToBeUnique",
    ("base_query comparison_data_source_name comparison_query", ""): "QueryResultsToMatchComparison",
    ("", _RANGE): "TableColumnCountToBeBetween",
    ("value", ""): "TableColumnCountToEqual TableRowCountToEqual",
    ("", "column_list"): "TableColumnsToMatchOrderedList",
    ("", "column_set exact_match"): "TableColumnsToMatchSet",
    ("", _STRICT): "TableRowCountToBeBetween",
    ("other_table_name", ""): "TableRowCountToEqualOtherTable",
}

ARGUMENTS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    f"Expect{name}": (frozenset(needed.split()), frozenset(further.split()))
    for name, needed, further in sorted((name, *key) for key, names in _TABLE.items() for name in names.split())
}
"""Of each expectation, by its class: the arguments it needs, and those it may have besides."""


def class_name(written: str) -> str:
    """`ExpectColumnValuesToBeUnique`, also for `expect_column_values_to_be_unique`."""
    return "".join(word[:1].upper() + word[1:] for word in written.split("_"))


_ENTITY_RULES: Final = """
    body id-missing id-type type-missing id-syntax type-syntax attr-syntax attr-shape shadowed-builtin
    number-string number-precision bool-string datetime datetime-range stale future-modified geojson null-island
    geo-legacy null-value unknown-type unknown-attr attr-type required-attr range enum model forbidden-char
    nesting size topic-length duplicate dup-across-paths type-drift relationship-target count-mismatch
    count-drop count-zero
"""
ENTITY_RULES = tuple(_ENTITY_RULES.split())
"""Rules about what a context broker holds."""

_STRUCTURE_RULES: Final = """
    unreadable one-structure urn-missing identity urn-agreement unknown-kind schema duplicate-item
    transcoding-loss topic-name duplicate dangling-reference version-order final-content count-mismatch
    count-drop count-zero
"""
STRUCTURE_RULES = tuple(_STRUCTURE_RULES.split())
"""Rules about what a structure registry holds."""

RULE_NAMES = tuple(dict.fromkeys((*ENTITY_RULES, *STRUCTURE_RULES)))


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


class Range(PublicationModel):
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


class Expectation(PublicationModel):
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
            raise ValueError(f"{severity!r} is not a severity: critical stops a run, warning and info do not")
        return self


class Quality(PublicationModel):
    """Severities of row rules, limits of the whole snapshot, and further expectations."""

    rules: Annotated[dict[RuleName, Severity], _OUTBOX_ID] = Field(
        {}, description="Severity of row rules by name: off, warning or error"
    )
    expectations: Annotated[tuple[Expectation, ...], _STOPS] = Field((), description="Further Great Expectations")
    max_quarantined_share: Annotated[Share, _STOPS] = Field(
        0.05, description="A run with a larger quarantined share fails before it sends"
    )
    minimum_entities: Annotated[Count, _STOPS] = Field(
        DEFAULT_MINIMUM,
        description="A full read of fewer entities or structures fails before it sends; by default, an empty source "
        "that never had any is a warning",
    )
    maximum_entities: Annotated[Positive | None, _STOPS] = Field(
        None, description="A full read of more entities or structures fails before it sends"
    )


class EntityQuality(Quality):
    """Severities of row rules, what attributes must be, limits of the whole snapshot, and further expectations."""

    required_attributes: Annotated[Names, _BOTH] = Field(
        (),
        description="Attributes that every entity must have; one without fails the run before it sends, and with "
        "rules: {required-attr: error} goes to quarantine instead",
    )
    attribute_types: Annotated[dict[str, Text], _BOTH] = Field(
        {}, description="NGSI type that an attribute must have, by name"
    )
    ranges: Annotated[dict[str, Range], _BOTH] = Field({}, description="Numbers that an attribute may have, by name")
    fresh_within_seconds: Annotated[Positive | None, _STOPS] = Field(
        None, description="Largest age of the newest change"
    )
    allowed_values: Annotated[dict[str, tuple[Scalar, ...]], _QUARANTINES] = Field(
        {}, description="Values that an attribute may have, by name"
    )
    stale_after_seconds: Annotated[dict[str, Positive], _QUARANTINES] = Field(
        {}, description="Largest age of an entity's newest time, by entity type; others: fresh_within_seconds"
    )
    syntax: Annotated[Literal["auto", "ngsiv2", "ngsi-ld"], _QUARANTINES] = Field(
        "auto", description="Syntax rules for names; auto: those of the interface that is read"
    )
    coerce_numbers: Annotated[Flag, ChangesRecords("the value of a record")] = Field(
        False,
        description="A text that is a JSON number is sent as that number if the attribute has a number's type",
    )
    allow_intervals: Annotated[Flag, _QUARANTINES] = Field(
        False, description="A DateTime may be an interval, start/end"
    )
    models: Annotated[dict[str, Text], _OUTBOX_ID] = Field(
        {}, description="JSON Schema that entities of a type must match, by type: a path from this file's folder"
    )
    model_documents: Annotated[SkipJsonSchema[dict[str, str]], _OUTBOX_ID] = Field(
        {}, description="Contents of models; never written"
    )
