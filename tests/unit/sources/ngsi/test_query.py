"""Queries as URL parameters."""

from __future__ import annotations

import pytest

from contexture.errors import ConfigurationError
from contexture.sources.ngsi.query import EntityQuery, condition_names


def test_the_first_page_of_a_full_walk_asks_without_a_condition() -> None:
    assert EntityQuery("/4wheels").page_parameters(since=None, offset=0, limit=1000) == {
        "limit": "1000",
        "offset": "0",
        "options": "skipForwarding",
        "attrs": "dateCreated,dateModified,dateExpires,servicePath,*",
        "metadata": "dateModified,*",
        "orderBy": "dateCreated,id,type",
    }


def test_every_selection_becomes_its_own_parameter() -> None:
    query = EntityQuery(
        "/#",
        types=("car", "van"),
        id_pattern="^urn:",
        q="speed>20;brand=='A;B'",
        attributes=("speed", "servicePath", "brand"),
        georel="near;maxDistance:1000",
        geometry="point",
        coords="40.4,-3.7",
        field="dateModified",
    )
    assert query.page_parameters(since="2026-01-01T00:00:00.000Z", offset=7, limit=10) == {
        "limit": "10",
        "offset": "7",
        "options": "skipForwarding",
        "attrs": "dateCreated,dateModified,dateExpires,servicePath,speed,brand",
        "metadata": "dateModified,*",
        "orderBy": "dateModified,id,type",
        "type": "car,van",
        "idPattern": "^urn:",
        "q": "speed>20;brand=='A;B';dateModified>=2026-01-01T00:00:00.000Z",
        "georel": "near;maxDistance:1000",
        "geometry": "point",
        "coords": "40.4,-3.7",
    }


def test_a_walk_for_identities_leaves_user_attributes_out() -> None:
    parameters = EntityQuery("/a", attributes=("speed",), identities_only=True).page_parameters(
        since=None, offset=0, limit=5
    )
    assert parameters["attrs"] == "dateCreated,dateModified,dateExpires,servicePath"


@pytest.mark.parametrize("identities_only", [False, True])
def test_every_page_requests_the_metadata_that_distinguishes_users_attributes_from_builtins(
    identities_only: bool,
) -> None:
    query = EntityQuery("/a", identities_only=identities_only)
    assert query.page_parameters(since=None, offset=0, limit=5)["metadata"] == "dateModified,*"


def test_a_count_asks_for_the_total_with_the_smallest_page() -> None:
    query = EntityQuery("/a", types=("car",), q="speed>20", field="dateModified", since="2026-01-01T00:00:00.000Z")
    assert query.count_parameters() == {
        "limit": "1",
        "offset": "0",
        "options": "count,skipForwarding",
        "attrs": "servicePath",
        "type": "car",
        "q": "speed>20;dateModified>=2026-01-01T00:00:00.000Z",
    }


def test_a_pattern_of_types_and_conditions_on_metadata_become_parameters() -> None:
    parameters = EntityQuery("/a", type_pattern="^car", mq="speed.accuracy>0.9;").count_parameters()
    assert (parameters["typePattern"], parameters["mq"]) == ("^car", "speed.accuracy>0.9")
    assert "type" not in parameters


def test_ids_are_a_list_and_exclude_a_pattern_of_ids() -> None:
    assert EntityQuery("/a", ids=("car1", "car2")).count_parameters()["id"] == "car1,car2"
    with pytest.raises(ConfigurationError, match="exclude each other"):
        EntityQuery("/a", ids=("car1",), id_pattern="^car")


def test_types_and_a_pattern_of_types_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match="exclude each other"):
        EntityQuery("/a", types=("car",), type_pattern="^car")


@pytest.mark.parametrize(
    "q", ["dateModified>2026-01-01", "speed>1; dateModified==A..B", "!dateModified", "'dateModified'<2026-01-01"]
)
def test_a_second_condition_on_the_field_of_the_walk_is_refused(q: str) -> None:
    with pytest.raises(ConfigurationError, match="dateModified"):
        EntityQuery("/a", q=q, field="dateModified")


def test_a_condition_on_the_other_time_is_kept() -> None:
    query = EntityQuery("/a", q="dateModified>2026-01-01", field="dateCreated")
    assert query.page_parameters(since=None, offset=0, limit=1)["q"] == "dateModified>2026-01-01"


@pytest.mark.parametrize(
    ("q", "names"),
    [
        (None, set()),
        ("speed>20", {"speed"}),
        ("a.b.c==1;!d;e", {"a", "d", "e"}),
        ("text=='x;dateModified>1'", {"text"}),
    ],
)
def test_condition_names_see_through_quotes_and_paths(q: str | None, names: set[str]) -> None:
    assert condition_names(q) == names


@pytest.mark.parametrize(
    "wrong",
    [
        {"service_path": "4wheels"},
        {"page_size": 0},
        {"page_size": 1001},
        {"georel": "near;maxDistance:1", "geometry": "point"},
    ],
)
def test_what_no_broker_takes_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        EntityQuery(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("service_path", "known"), [("/a", "/a"), ("/a/", "/a"), ("/", "/"), ("/#", None), ("/a/#", None), ("/a,/b", None)]
)
def test_the_path_of_an_answer_is_known_when_only_one_was_asked_for(service_path: str, known: str | None) -> None:
    assert EntityQuery(service_path).known_path == known
