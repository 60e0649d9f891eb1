"""What encoder, partition key, partitioner and messages of whole transactions exclude."""

from __future__ import annotations

from typing import Any

import pytest

from builders.outboxes import publication
from builders.structure_publications import structure_settings, structures
from contexture.publications import NgsiPublication, SdmxPublication, fingerprint
from contexture.publications.loading import validate
from contexture.publications.problems import ModelProblemsError

EVENTS = {"envelope": "cloudevents-binary"}
HISTORY = {"topics": ["structures"], "keep": "history"}


def refusal(**sections: Any) -> str:
    found, problems = validate(structure_settings(**sections))
    assert found is None
    return str(ModelProblemsError(problems))


def of_entities(**sections: Any) -> str:
    source = {"kind": "ngsi", "connection": "broker", "service": "s"}
    found, problems = validate({"name": "cars", "source": source, **sections})
    assert found is None
    return str(ModelProblemsError(problems))


def test_choices_change_the_fingerprint_and_their_defaults_do_not():
    plain = fingerprint(publication())
    written = publication(message={"encoder": None, "partition_key": "none"}, publish={"partitioner": "murmur2"})
    assert fingerprint(written) == plain
    changed = [
        publication(message={"encoder": "avro"}),
        publication(message={**EVENTS, "partition_key": "type"}),
        publication(publish={"partitioner": "type"}),
    ]
    assert len({plain, fingerprint(publication(message=EVENTS)), *map(fingerprint, changed)}) == 5


def test_a_bundle_changes_the_fingerprint_and_its_default_does_not():
    plain = fingerprint(structures(topics=HISTORY))
    assert fingerprint(structures(topics=HISTORY, message={"bundle": "artefact"})) == plain
    assert fingerprint(structures(topics=HISTORY, message={"bundle": "transaction"})) != plain


def test_a_number_is_a_partition():
    found = publication(publish={"partitioner": 2}, topics={"partitions": 3})
    assert NgsiPublication.of(found).publish.partitioner == "2"


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"message": {**EVENTS, "encoder": "avro"}}, "datacontenttype would name another form"),
        ({"message": {"partition_key": "type"}}, "`partition_key: type` is an attribute of CloudEvents"),
        ({"publish": {"partitioner": 1}}, "new topics have 1 partitions, counted from 0"),
        ({"publish": {"partitioner": True}}, "partitioner"),
        (
            {"publish": {"partitioner": "type"}, "message": {"key": "id"}, "topics": {"keep": "history"}},
            "`partitioner: type` reads the identity, which is not in `key: id`",
        ),
    ],
)
def test_choices_that_contradict_each_other_are_refused(sections, said):
    assert said in of_entities(**sections)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({}, "`bundle: transaction` with `keep: latest`"),
        ({"topics": {**HISTORY, "partitions": 2}}, "with 2 partitions: messages and deletions would lose their order"),
        ({"message": {**EVENTS, "bundle": "transaction"}}, "an event is about one structure"),
        ({"message": {"allow_lossy": True, "bundle": "transaction"}}, "headers name what one structure lost"),
        ({"publish": {"partitioner": "agency"}}, "`partitioner: agency` is a part of the URN"),
        ({"source": {"registrations": True}}, "a structure message holds no data registrations"),
        ({"source": {"media_type": "application/vnd.sdmx.structure;version=edi"}}, "cannot be joined"),
    ],
)
def test_what_a_message_of_a_whole_transaction_excludes(sections, said):
    topics = {} if not sections else {"topics": HISTORY}
    assert said in refusal(**{"message": {"bundle": "transaction"}, **topics, **sections})


def test_several_partitions_are_right_where_one_of_them_has_all():
    found = structures(
        message={"bundle": "transaction"}, topics={**HISTORY, "partitions": 2}, publish={"partitioner": 1}
    )
    assert SdmxPublication.of(found).message.bundle == "transaction"


def test_other_kinds_of_sources_have_no_bundle():
    assert "bundle" in of_entities(message={"bundle": "transaction"})
