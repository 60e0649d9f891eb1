"""What the options of a read say; needs pyspark's classes, but no session."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from spark_jobs.data_sources.walks import Selection

pytestmark = pytest.mark.spark


def test_options_say_the_same_selection_again() -> None:
    selection = Selection(
        service="s", service_path="/a,/b/#", types="car", mode="changes", since="x", identities="true"
    )
    assert Selection.of(selection.options()) == selection


def test_every_service_path_gets_a_walk_for_bodies_and_one_for_identities() -> None:
    since = "2026-01-01T00:00:00.000Z"
    walks = Selection(service_path="/a, /b", mode="changes", since=since, identities="true").walks()
    told = [(walk.number, walk.query.service_path, walk.query.field, walk.query.since, walk.bodies) for walk in walks]
    assert told == [
        (0, "/a", "dateModified", since, True),
        (1, "/a", "dateCreated", None, False),
        (2, "/b", "dateModified", since, True),
        (3, "/b", "dateCreated", None, False),
    ]
    assert [walk.query.identities_only for walk in walks] == [False, True, False, True]


def test_readers_leave_the_broker_alone_for_as_long_as_the_option_says() -> None:
    assert Selection(pause_milliseconds="250").budget.pause_seconds == 0.25
    assert Selection().budget.pause_seconds == 0


def test_a_misspelt_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError, match="tpyes") as raised:
        Selection.of({"url": "http://b", "tpyes": "car"})
    assert raised.value.next_step == "use types"


def test_option_names_are_taken_in_any_case() -> None:
    assert Selection.of({"Service_Path": "/a"}) == Selection(service_path="/a")


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "notifications"},
        {"mode": "changes"},
        {"identities": "maybe"},
        {"page_size": "many"},
        {"page_size": "-1"},
        {"walk_deadline_seconds": ""},
        {"parallel_readers": "0"},
        {"parallel_readers": "17"},
        {"pause_milliseconds": "-5"},
    ],
)
def test_a_value_that_can_not_be_used_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        Selection.of(options)
