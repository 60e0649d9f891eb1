"""How a topic that differs can be brought to what its publication says."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from contexture.kafka import ClientSettings
from contexture.kafka.topics import UNKNOWN_SETTING, TopicDrift, TopicsPlan, Way, apply_plan, change_for

SETTINGS = ClientSettings.from_extra({"bootstrap.servers": "127.0.0.1:9"})


@pytest.mark.parametrize(
    ("setting", "wanted", "found", "keyed", "way"),
    [
        ("partitions", "4", "2", False, Way.GROW),
        ("partitions", "4", "2", True, Way.GROW_KEYED),
        ("partitions", "10", "9", False, Way.GROW),
        ("partitions", "2", "4", False, Way.BY_HAND),
        ("replication_factor", "3", "1", False, Way.BY_HAND),
        ("cleanup.policy", "compact", "delete", True, Way.CONFIGURE),
        ("no.such", "1", UNKNOWN_SETTING, True, Way.BY_HAND),
    ],
)
def test_each_difference_has_its_way(setting, wanted, found, keyed, way):
    change = change_for(TopicDrift("t", setting, wanted, found), keyed=keyed)
    assert change.way is way
    assert change.advice


def test_keys_are_not_moved_unless_confirmed():
    change = change_for(TopicDrift("cars", "partitions", "4", "2"), keyed=True)
    other = change_for(TopicDrift("bikes", "retention.ms", "1", "2"), keyed=True)
    with pytest.raises(ConfigurationError, match=r"1 topics with keys .* cars: .*--grow-keyed"):
        apply_plan(SETTINGS, TopicsPlan((), 0, (other, change)), wait_seconds=0.1)


def test_what_is_left_to_a_person_changes_nothing():
    change = change_for(TopicDrift("cars", "replication_factor", "3", "1"), keyed=False)
    assert apply_plan(SETTINGS, TopicsPlan((), 0, (change,)), wait_seconds=0.1) == ()
