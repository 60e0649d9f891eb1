"""Structures and the topics they go to."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import ConfigurationError
from contexture.publications.topics import Route, StructureTopics
from contexture.records.topics import TopicNameError, encodings, structure_routes
from contexture.records.topics.structure_routes import Router
from contexture.sources.sdmx import SelectorError

MODEL = "urn:sdmx:org.sdmx.infomodel."
OLD = MODEL + "codelist.Codelist=ECB:CL(1.0.0)"
NEW = MODEL + "codelist.Codelist=ECB:CL(1.1.0)"
BIS = MODEL + "codelist.Codelist=BIS:CL(1.0)"
FLOW = MODEL + "datastructure.Dataflow=ECB.STA:EXR(1.0)"
LONG = MODEL + f"codelist.Codelist={'A' * 250}:CL(1.0)"


@dataclass(frozen=True)
class Written:
    select: str
    topics: tuple[str, ...]


def router(*routes: tuple[str, str]) -> Router:
    return Router([Written(select, tuple(topics.split())) for select, topics in routes])


def test_a_structure_goes_to_every_topic_of_the_route_that_selects_it():
    assert router(("Codelist=ECB:*(*)", "FOO BAR")).route([OLD]).topics == {OLD: ("FOO", "BAR")}


def test_a_structure_of_several_routes_goes_to_the_topics_of_all_each_once():
    found = router(("Codelist=*:*(*)", "codelists all"), ("*=ECB:*(*)", "ecb codelists")).route([OLD, BIS])
    assert found.topics == {OLD: ("codelists", "all", "ecb"), BIS: ("codelists", "all")}


def test_what_no_route_selects_is_reported():
    found = router(("Codelist=ECB:*(*)", "ecb")).route([OLD, BIS, "no urn"])
    assert found.topics == {OLD: ("ecb",)}
    assert found.unrouted == (BIS, "no urn")
    assert router().route([OLD]).unrouted == (OLD,)


def test_topics_are_made_from_agency_and_class():
    found = router(("*", "structures-{agency} {class}.{agency}")).route([FLOW])
    assert found.topics == {FLOW: ("structures-ECB.STA", "Dataflow.ECB.STA")}


def test_names_are_encoded_as_cygnus_does_unless_another_way_is_asked_for():
    strange = MODEL + "codelist.Codelist=E@B.x0041:CL(1.0)"
    assert router(("*", "of-{agency}")).route([strange]).topics == {strange: ("of-Ex0040B.xx0041",)}
    own = Router([Written("*", ("of-{agency}",))], encode=lambda text: encodings.encode_injective((text,)))
    assert own.route([FLOW]).topics == {FLOW: ("of-ECB_pSTA",)}


def test_a_structure_whose_topic_is_illegal_is_refused_and_the_others_go_on():
    found = router(("*", "{agency}")).route([LONG, BIS])
    assert found.topics == {BIS: ("BIS",)}
    assert "has 250 characters" in found.refused[LONG].message
    assert found.unrouted == ()


def test_topics_that_kafka_takes_for_one_are_reported():
    dotted, underscored = (MODEL + f"codelist.Codelist={agency}:CL(1.0)" for agency in ("ECB.STA", "ECB_STA"))
    assert router(("*", "{agency}")).route([dotted, underscored]).clashes == (("ECB.STA", "ECB_STA"),)
    assert router(("*", "{agency}")).route([dotted, BIS]).clashes == ()


def test_the_latest_version_shows_among_everything_that_is_held():
    latest = router(("Codelist=*:*(~)", "latest"))
    assert latest.route([OLD]).topics == {OLD: ("latest",)}
    assert latest.route([OLD], held=[OLD, NEW, BIS]).unrouted == (OLD,)
    assert latest.route([NEW], held=[OLD, NEW, BIS]).topics == {NEW: ("latest",)}


def test_the_routes_of_a_publication_are_routes():
    route = Route.model_validate({"select": "Codelist=ECB:*(*)", "topics": "FOO,{class}-{agency}"})
    assert Router([route]).route([OLD]).topics == {OLD: ("FOO", "Codelist-ECB")}


@pytest.mark.parametrize(
    ("select", "topic", "error"),
    [
        ("Codelst=ECB:*(*)", "FOO", SelectorError),
        ("*", "{id}", ConfigurationError),
        ("*", "a b", TopicNameError),
        ("*", "{agency", TopicNameError),
        ("*", "", TopicNameError),
    ],
)
def test_what_can_never_work_is_refused_at_once(select, topic, error):
    with pytest.raises(error):
        Router([Written(select, (topic,))])


AGENCIES = st.text(st.sampled_from("AxB0.-_@"), min_size=1, max_size=6)
ROUTES = st.lists(
    st.tuples(st.sampled_from(["*", "*=A:*(*)", "Codelist=*:*(~)"]), st.sampled_from(["T", "{agency}", "U T"]))
)


@given(st.lists(AGENCIES), ROUTES)
def test_no_structure_is_lost(agencies, routes):
    urns = [MODEL + f"codelist.Codelist={agency}:CL(1.0)" for agency in agencies]
    found = router(*routes).route(urns)
    assert sorted([*found.topics, *found.unrouted, *found.refused]) == sorted(set(urns))


def test_every_structure_goes_to_the_topics_of_a_publication_and_to_those_of_its_routes():
    settings = StructureTopics.model_validate({"topics": "all", "routes": [{"select": "*=BIS:*(*)", "topics": "bis"}]})
    found = structure_routes.router(settings).route([OLD, BIS])
    assert found.topics == {OLD: ("all",), BIS: ("all", "bis")}
    assert found.unrouted == ()


def test_without_topics_for_all_what_no_route_selects_goes_nowhere():
    settings = StructureTopics.model_validate({"routes": [{"select": "*=BIS:*(*)", "topics": "bis"}]})
    found = structure_routes.router(settings).route([OLD, BIS])
    assert found.topics == {BIS: ("bis",)}
    assert found.unrouted == (OLD,)
