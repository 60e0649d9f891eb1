"""What the table of producers says of a publication."""

from __future__ import annotations

import pytest

from builders.outboxes import publication
from builders.structure_publications import structures
from contexture.publications import Publication

ROUTED = structures(
    topics={
        "topics": ["all"],
        "routes": [
            {"select": "Codelist=BIS:*(*)", "topics": ["codelists", "all"]},
            {"select": "Dataflow=*:*(*)", "topics": ["{agency}-flows"]},
        ],
    }
)
JSON = "application/vnd.sdmx.structure+json;version=2.0.0"


@pytest.mark.parametrize(
    ("made", "topics", "form"),
    [
        (publication(), "cygnus dm-by-entity", "ngsiv2"),
        (structures(), "structures", "application/vnd.sdmx.structure+xml;version=2.1"),
        (structures(source={"media_type": JSON}), "structures", JSON),
        (ROUTED, "all,codelists,{agency}-flows", "application/vnd.sdmx.structure+xml;version=2.1"),
    ],
)
def test_a_producer_has_the_topics_of_its_routes_and_the_media_type_of_its_structures(
    made: Publication, topics: str, form: str
) -> None:
    assert (made.topics.summary, made.record_form) == (topics, form)
