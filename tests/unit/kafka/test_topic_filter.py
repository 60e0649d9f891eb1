"""Topics by pattern."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from contexture.kafka import TopicFilter

NAMES = ["ngsi.cars", "ngsi.cars.test", "sdmx.codes", "__consumer_offsets", "contexture.ledger.cars", "ngsi"]


@pytest.mark.parametrize(
    ("include", "exclude", "chosen"),
    [
        (r"ngsi\..*", "", ["ngsi.cars", "ngsi.cars.test"]),
        (r"ngsi\..*", r".*\.test", ["ngsi.cars"]),
        (".*", "", ["ngsi", "ngsi.cars", "ngsi.cars.test", "sdmx.codes"]),
        ("ngsi", "", ["ngsi"]),
        (".*", ".*", []),
    ],
)
def test_whole_names_are_matched_and_internal_topics_never_meant(include, exclude, chosen):
    assert TopicFilter(include, exclude=exclude).chosen(NAMES) == chosen


def test_a_pattern_that_can_not_be_read_is_reported():
    with pytest.raises(ConfigurationError, match=r"'\(' is not a pattern of topics"):
        TopicFilter("(")
