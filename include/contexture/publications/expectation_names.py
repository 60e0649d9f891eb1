"""The expectations that Great Expectations has, with their arguments, so that a file is checked without it.

A test holds the table against the version that is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMMON: Final = frozenset({"severity", "notes", "mostly"})
"""Arguments that any of them may be given; `mostly`: what share of rows has to hold."""

_RANGE: Final = "min_value max_value"
_STRICT: Final = f"{_RANGE} strict_min strict_max"
_PAIR: Final = "column_A column_B"

# Name without `Expect`: what it must be given, and what it may be given besides.
_TABLE: Final = {
    "ColumnDistinctValuesToBeInSet": ("column value_set", ""),
    "ColumnDistinctValuesToContainSet": ("column value_set", ""),
    "ColumnDistinctValuesToEqualSet": ("column value_set", ""),
    "ColumnKLDivergenceToBeLessThan": (
        "column",
        f"partition_object threshold internal_weight_holdout tail_weight_holdout bucketize_data {_RANGE}",
    ),
    "ColumnMaxToBeBetween": ("column", _STRICT),
    "ColumnMeanToBeBetween": ("column", _STRICT),
    "ColumnMedianToBeBetween": ("column", _STRICT),
    "ColumnMinToBeBetween": ("column", _STRICT),
    "ColumnMostCommonValueToBeInSet": ("column value_set", "ties_okay"),
    "ColumnPairValuesAToBeGreaterThanB": (_PAIR, "or_equal ignore_row_if"),
    "ColumnPairValuesToBeEqual": (_PAIR, "ignore_row_if"),
    "ColumnPairValuesToBeInSet": (f"{_PAIR} value_pairs_set", "ignore_row_if"),
    "ColumnProportionOfNonNullValuesToBeBetween": ("column", _STRICT),
    "ColumnProportionOfUniqueValuesToBeBetween": ("column", _STRICT),
    "ColumnQuantileValuesToBeBetween": ("column quantile_ranges", "allow_relative_error"),
    "ColumnStdevToBeBetween": ("column", _STRICT),
    "ColumnSumToBeBetween": ("column", _STRICT),
    "ColumnToExist": ("column", "column_index"),
    "ColumnTypeToBe": ("column type_", ""),
    "ColumnUniqueValueCountToBeBetween": ("column", _STRICT),
    "ColumnValueLengthsToBeBetween": ("column", _STRICT),
    "ColumnValueLengthsToEqual": ("column value", ""),
    "ColumnValueZScoresToBeLessThan": ("column threshold double_sided", ""),
    "ColumnValuesToBeBetween": ("column", _STRICT),
    "ColumnValuesToBeDateutilParseable": ("column", ""),
    "ColumnValuesToBeDecreasing": ("column", "strictly"),
    "ColumnValuesToBeInSet": ("column value_set", ""),
    "ColumnValuesToBeInTypeList": ("column", "type_list"),
    "ColumnValuesToBeIncreasing": ("column", "strictly"),
    "ColumnValuesToBeJsonParseable": ("column", ""),
    "ColumnValuesToBeNull": ("column", ""),
    "ColumnValuesToBeOfType": ("column type_", ""),
    "ColumnValuesToBeUnique": ("column", ""),
    "ColumnValuesToMatchJsonSchema": ("column json_schema", ""),
    "ColumnValuesToMatchLikePattern": ("column like_pattern", "escape"),
    "ColumnValuesToMatchLikePatternList": ("column like_pattern_list", "match_on escape"),
    "ColumnValuesToMatchRegex": ("column", "regex"),
    "ColumnValuesToMatchRegexList": ("column regex_list", "match_on"),
    "ColumnValuesToMatchStrftimeFormat": ("column strftime_format", ""),
    "ColumnValuesToNotBeInSet": ("column value_set", ""),
    "ColumnValuesToNotBeNull": ("column", ""),
    "ColumnValuesToNotBeOutliers": ("column", "method multiplier"),
    "ColumnValuesToNotMatchLikePattern": ("column like_pattern", "escape"),
    "ColumnValuesToNotMatchLikePatternList": ("column like_pattern_list", "escape"),
    "ColumnValuesToNotMatchRegex": ("column regex", ""),
    "ColumnValuesToNotMatchRegexList": ("column regex_list", ""),
    "CompoundColumnsToBeUnique": ("column_list", "ignore_row_if"),
    "MulticolumnSumToEqual": ("column_list sum_total", "ignore_row_if"),
    "MulticolumnValuesToBeEqual": ("column_list", "ignore_row_if"),
    "MulticolumnValuesToBeUnique": ("column column_list", "ignore_row_if"),
    "QueryResultsToMatchComparison": ("base_query comparison_data_source_name comparison_query", ""),
    "SelectColumnValuesToBeUniqueWithinRecord": ("column_list", "ignore_row_if"),
    "TableColumnCountToBeBetween": ("", _RANGE),
    "TableColumnCountToEqual": ("value", ""),
    "TableColumnsToMatchOrderedList": ("", "column_list"),
    "TableColumnsToMatchSet": ("", "column_set exact_match"),
    "TableRowCountToBeBetween": ("", _STRICT),
    "TableRowCountToEqual": ("value", ""),
    "TableRowCountToEqualOtherTable": ("other_table_name", ""),
}

ARGUMENTS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    f"Expect{name}": (frozenset(needed.split()), frozenset(further.split()))
    for name, (needed, further) in _TABLE.items()
}
"""Of each expectation, by its class: the arguments it needs, and those it may have besides."""


def class_name(written: str) -> str:
    """`ExpectColumnValuesToBeUnique`, also for `expect_column_values_to_be_unique`."""
    return "".join(word[:1].upper() + word[1:] for word in written.split("_"))
