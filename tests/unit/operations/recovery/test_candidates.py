"""Which topics are looked through for the records of a publication."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from builders.outboxes import publication
from builders.structure_runs import registry_publication
from contexture.events import ContextIdentity
from contexture.operations.recovery.state import candidates
from contexture.records.topics import TopicNameError, TopicNamer

CLUSTER = [
    "vehicles",
    "vehiclesxffffx002f4wheelsxffffcar1xffffcar",
    "VEHICLESxffffx002f4wheelsxffffcar1xffffcar",
    "vehicles2xffffx002f4wheelsxffffcar1xffffcar",
    "vehicles___s4wheels__car1__car",
    "cars",
    "structures-BIS",
    "structures",
    "__consumer_offsets",
    "contexture.ledger.vehicles",
]
ENTITY = CLUSTER[1]
MAPPINGS = '{"serviceMappings":[{"originalService":"vehicles","newService":"v"}]}'


@pytest.mark.parametrize(
    ("topics", "chosen"),
    [
        ({}, [ENTITY]),
        ({"data_model": "dm-by-service"}, ["vehicles"]),
        ({"data_model": "dm-by-service-path"}, [ENTITY]),
        ({"naming": "injective"}, ["vehicles___s4wheels__car1__car"]),
        ({"naming": "fixed", "topics": ["cars", "more.cars"]}, ["cars"]),
        ({"naming": "fixed", "topics": ["CARS"], "enable_lowercase": True}, ["cars"]),
        (
            {"enable_name_mappings": True, "name_mappings": "m.json", "name_mappings_content": MAPPINGS},
            [name for name in sorted(CLUSTER) if not name.startswith(("__", "contexture."))],
        ),
    ],
)
def test_topics_that_may_be_of_the_service(topics: dict[str, Any], chosen: list[str]) -> None:
    assert candidates(publication(topics=topics), CLUSTER) == chosen


def test_topics_of_structures_are_made_from_them() -> None:
    topics = {"topics": ["cars"], "routes": [{"select": "*", "topics": ["structures-{agency}"]}]}

    assert candidates(registry_publication(topics=topics), CLUSTER) == ["cars", "structures-BIS"]


LEVELS = st.lists(st.from_regex(r"[A-Za-z0-9_]{1,8}", fullmatch=True), max_size=3)


@given(
    st.from_regex(r"[a-z0-9_]{0,20}", fullmatch=True),
    LEVELS,
    st.text(max_size=12),
    st.text(max_size=12),
    st.sampled_from(["cygnus", "cygnus-legacy", "injective"]),
    st.sampled_from(["dm-by-service", "dm-by-service-path", "dm-by-entity", "dm-by-attribute"]),
    st.booleans(),
)
def test_every_topic_of_the_service_is_among_them(
    service: str, levels: list[str], name: str, kind: str, naming: str, data_model: str, lowercase: bool
) -> None:
    source = {"kind": "ngsi", "connection": "c", "service": service, "service_path": "/#"}
    topics = {"naming": naming, "data_model": data_model, "enable_lowercase": lowercase, "keep": "history"}
    try:
        owner = publication(source=source, topics=topics)
        topic = TopicNamer(owner.topics).name(ContextIdentity(service, "/" + "/".join(levels), name, kind), "speed")
    except (TopicNameError, ValidationError):
        return

    assert candidates(owner, [topic]) == [topic]
