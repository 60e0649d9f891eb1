"""Selectors, routes and lists of topics: what a publication takes for structures."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from contexture.publications.loading import validate
from contexture.publications.source import Selectors
from contexture.publications.topics import Route, TopicNames

SELECTORS: TypeAdapter[tuple[str, ...]] = TypeAdapter(Selectors)
TOPICS: TypeAdapter[tuple[str, ...]] = TypeAdapter(TopicNames)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("FOO", ("FOO",)),
        ("FOO,BAR", ("FOO", "BAR")),
        ("FOO, BAR", ("FOO", "BAR")),
        (["FOO", "BAR"], ("FOO", "BAR")),
    ],
)
def test_topics_are_a_list_or_a_text_with_commas(written, read):
    assert TOPICS.validate_python(written) == read


@pytest.mark.parametrize("written", ["FOO,", ",", "", "FOO,FOO", "FOO,b ar", ["FOO,BAR"], "{agency}"])
def test_what_is_no_list_of_different_topics_is_refused(written):
    with pytest.raises(ValidationError):
        TOPICS.validate_python(written)


def test_topics_of_a_route_may_be_made_from_agency_and_class():
    route = Route.model_validate({"select": "*", "topics": "FOO,{class}.{agency}"})
    assert route.topics == ("FOO", "{class}.{agency}")


@pytest.mark.parametrize(
    ("topics", "reason"),
    [
        ("{id}", "names are made from {agency} and {class} only"),
        ("a-{agency", "names are made from {agency} and {class} only"),
        ("a b-{agency}", "is not a topic name"),
        ([], "at least 1 item"),
    ],
)
def test_topics_of_a_route_are_made_from_nothing_else(topics, reason):
    with pytest.raises(ValidationError, match=reason.replace("{", r"\{")):
        Route.model_validate({"select": "*", "topics": topics})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("*", ("*",)),
        ("Codelist,ValueList=BIS,ECB.*:*(1.0,2.3+.1)", ("Codelist,ValueList=BIS,ECB.*:*(1.0,2.3+.1)",)),
        (["*=BIS:*(*)", "*=ECB:*(~)"], ("*=BIS:*(*)", "*=ECB:*(~)")),
    ],
)
def test_selectors_may_hold_commas(written, read):
    assert SELECTORS.validate_python(written) == read


@pytest.mark.parametrize(
    "written", ["", "Codelist", "Codelist=ECB", "Codelist=ECB:*", "=:()", ["*", "*"], "A=B:C(1).D"]
)
def test_what_has_not_the_shape_of_a_selector_is_refused(written):
    with pytest.raises(ValidationError):
        SELECTORS.validate_python(written)


def test_a_wrong_selector_does_not_make_anything_else_wrong():
    source = {"kind": "sdmx", "connection": "registry", "select": ["Codelist"]}
    topics = {"naming": "fixed", "topics": "FOO"}
    _, findings = validate({"name": "a", "source": source, "topics": topics, "message": {"format": "sdmx"}})
    assert [".".join(map(str, finding.location)) for finding in findings] == ["source.select.0"]
