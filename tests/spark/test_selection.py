"""The options of a read; needs pyspark's classes, but no session."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from spark_jobs.data_sources.walks import WalkSelection

pytestmark = pytest.mark.spark


def test_options_are_read_back_as_the_same_selection() -> None:
    selection = WalkSelection(
        service="s", service_path="/a,/b/#", types="car", mode="changes", since="x", identities="true"
    )
    assert WalkSelection.of(selection.options()) == selection


def test_every_service_path_gets_a_walk_for_bodies_and_one_for_identities() -> None:
    since = "2026-01-01T00:00:00.000Z"
    walks = WalkSelection(service_path="/a, /b", mode="changes", since=since, identities="true").walks()
    found = [(walk.number, walk.query.service_path, walk.query.field, walk.query.since, walk.bodies) for walk in walks]
    assert found == [
        (0, "/a", "dateModified", since, True),
        (1, "/a", "dateCreated", None, False),
        (2, "/b", "dateModified", since, True),
        (3, "/b", "dateCreated", None, False),
    ]
    assert [walk.query.identities_only for walk in walks] == [False, True, False, True]


def test_readers_pause_as_long_as_the_option_says() -> None:
    assert WalkSelection(pause_milliseconds="250").budget.pause_seconds == 0.25
    assert WalkSelection().budget.pause_seconds == 0


def test_a_misspelt_option_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigurationError, match="tpyes") as raised:
        WalkSelection.of({"url": "http://b", "tpyes": "car"})
    assert raised.value.next_step == "use types"


def test_option_names_are_accepted_in_any_case() -> None:
    assert WalkSelection.of({"Service_Path": "/a"}) == WalkSelection(service_path="/a")


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
def test_an_invalid_value_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        WalkSelection.of(options)
