"""The list of rules, and what a publication may say about them."""

from __future__ import annotations

import pickle

import pytest

from contexture.errors import ConfigurationError
from contexture.publications import Publication
from contexture.sources.ngsi.rules.catalogue import RULES, EntityRuleOptions, severities


def test_each_rule_is_listed_once_with_a_description() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.description and not rule.description.endswith(".") for rule in RULES)


def test_rules_that_are_off_have_no_severity() -> None:
    merged = severities({"stale": "off", "datetime": "error"})
    assert (merged.get("stale"), merged["datetime"], merged["id-missing"]) == (None, "error", "error")


def test_an_unknown_rule_is_named_with_the_nearest_one() -> None:
    expected = r"no such rule: date-time, qqq.*use datetime, a name from the list of rules"
    with pytest.raises(ConfigurationError, match=expected):
        severities({"stale": "error", "date-time": "off", "qqq": "off"})


def test_a_publication_says_what_its_entities_are_checked_against() -> None:
    publication = Publication.model_validate(
        {
            "name": "vehicles",
            "source": {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "types": ["car"]},
            "topics": {"config": {"max.message.bytes": "2000000"}},
            "quality": {
                "rules": {"datetime": "error"},
                "required_attributes": ["speed"],
                "attribute_types": {"speed": "Number"},
                "ranges": {"speed": {"minimum": 0}},
                "fresh_within_seconds": 3600,
            },
        }
    )
    options = EntityRuleOptions.for_publication(publication)
    assert options.severities["datetime"] == "error"
    assert options.required_attributes == ("speed",)
    assert options.attribute_types == {"speed": "Number"}
    assert options.ranges == {"speed": (0, None)}
    assert options.entity_types == {"car"}
    assert (options.stale_after_seconds, options.maximum_bytes) == (3600, 2_000_000)


def test_options_travel_to_other_processes() -> None:
    options = EntityRuleOptions(severities=severities({"stale": "off"}), required_attributes=("speed",))
    assert pickle.loads(pickle.dumps(options)) == options
