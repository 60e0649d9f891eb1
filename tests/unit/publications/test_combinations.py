"""Values that are right by themselves and impossible together."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from contexture.publications import Publication
from contexture.publications.loading import validate
from contexture.publications.problems import ModelProblemsError


def settings(**sections: dict[str, object]) -> dict[str, object]:
    source = {"kind": "ngsi", "connection": "broker", **sections.pop("source", {})}
    service = {"service": "vehicles"} if source["kind"] == "ngsi" else {}
    return {"name": "vehicles", "source": {**service, **source}, **sections}


def publication(**sections: dict[str, object]) -> Publication:
    return Publication.model_validate(settings(**sections))


def refusal(**sections: dict[str, object]) -> str:
    found, findings = validate(settings(**sections))
    assert found is None
    return str(ModelProblemsError(findings))


LINES = {"format": "cygnus-lines"}


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"message": {"key": "none"}, "topics": {"keep": "history"}}, "a tombstone without a key deletes nothing"),
        (
            {"message": {"key": "none"}, "source": {"detect_deletions": False}},
            "a compacted topic accepts no record without a key",
        ),
        ({"message": LINES, "batches": {"batch_size": 2}}, "no key is that of them all"),
        (
            {
                "message": LINES,
                "batches": {"batch_size": 2},
                "topics": {"keep": "history", "data_model": "dm-by-service"},
            },
            "have no common `key: identity`",
        ),
        (
            {
                "message": {**LINES, "envelope": "cloudevents-binary"},
                "batches": {"batch_size": 2},
                "topics": {"keep": "history"},
            },
            "`envelope: cloudevents-binary` is around one event, and up to 2 cygnus-lines share a record",
        ),
        ({"message": {"key": "brand"}}, "the attribute 'brand' is not part of the identity"),
        (
            {"message": {"key": "brand"}, "topics": {"keep": "history"}, "source": {"attributes": ["speed"]}},
            "`key: brand` is the value of an attribute that is not read",
        ),
        (
            {"message": {"key": "topic"}, "topics": {"data_model": "dm-by-service"}},
            "they differ in id, service_path, type",
        ),
        ({"message": {"key": "id"}, "topics": {"data_model": "dm-by-service"}}, "they differ in service_path, type"),
        ({"message": {"key": "topic"}, "topics": {"enable_lowercase": True}}, "they differ in id, service_path, type"),
        ({"message": {"key": "topic"}, "topics": {"naming": "fixed", "topics": ["A"]}}, "they differ in id"),
        (
            {"message": {"key": "id"}, "topics": {"data_model": "dm-by-attribute", "enable_lowercase": True}},
            "attribute",
        ),
        ({"topics": {"naming": "fixed"}}, "`naming: fixed` needs the names"),
        ({"topics": {"topics": ["A"]}}, "`topics` needs `naming: fixed`"),
        ({"topics": {"data_model": "dm-by-service"}, "source": {"service": ""}}, "the default tenant an empty name"),
        ({"topics": {"config": {"cleanup.policy": "delete"}}}, "`keep` decides the cleanup policy"),
        (
            {"topics": {"config": {"min.insync.replicas": 2}, "replication_factor": 1}},
            "is above replication_factor 1: no record could be sent",
        ),
        ({"topics": {"config": {"max.message.bytes": "1 MB"}}}, "max.message.bytes '1 MB'"),
        ({"message": {"format": "sdmx"}}, "`format: sdmx` needs `kind: sdmx`"),
        ({"message": {"allow_lossy": True}}, "`allow_lossy` needs `kind: sdmx`"),
        ({"topics": {"routes": [{"select": "*", "topics": ["A"]}]}}, "`routes` needs `kind: sdmx`"),
        ({"source": {"select": ["*"]}}, "`select` needs `kind: sdmx`"),
        ({"source": {"registrations": True}}, "`registrations` needs `kind: sdmx`"),
        ({"source": {"types": ["car"], "type_pattern": "^car"}}, "`type_pattern` and `types` exclude each other"),
        ({"source": {"ids": ["car1"], "id_pattern": "^car"}}, "`id_pattern` and `ids` exclude each other"),
        ({"source": {"georel": "near;maxDistance:10", "coords": "1,2"}}, "missing: geometry"),
        (
            {"source": {"attributes": ["speed"]}, "quality": {"required_attributes": ["oil"]}},
            "'oil' is required but not read",
        ),
        ({"quality": {"minimum_entities": 5, "maximum_entities": 4}}, "is above maximum_entities 4"),
        ({"quality": {"ranges": {"speed": {"minimum": 5, "maximum": 4}}}}, "nothing could pass"),
        ({"quality": {"expectations": [{"name": "expect_x", "kwargs": {"severity": "fatal"}}]}}, "is not a severity"),
        ({"quality": {"rules": {"stael": "off"}}}, "no rule is called 'stael'; did you mean 'stale'?"),
        ({"quality": {"ranges": {"speed": {}}}}, "a range needs a minimum, a maximum or both"),
    ],
)
def test_impossible_combinations_are_refused(sections, expected):
    assert expected in refusal(**sections)


@pytest.mark.parametrize(
    "sections",
    [
        {"message": {"key": "topic"}},
        {"message": {"key": "none"}, "topics": {"keep": "history"}, "source": {"detect_deletions": False}},
        {"message": {"key": "topic"}, "topics": {"data_model": "dm-by-attribute"}},
        {
            "message": {"key": "id"},
            "topics": {"data_model": "dm-by-service"},
            "source": {"service_path": "/a", "types": ["car"]},
        },
        {
            "message": {"format": "cygnus-lines", "key": "topic"},
            "batches": {"batch_size": 9},
            "topics": {"keep": "history", "data_model": "dm-by-service"},
        },
        {"message": LINES, "batches": {"batch_size": 9}, "topics": {"keep": "history"}},
        {"message": {"format": "ngsiv2"}, "batches": {"batch_size": 9}},
        {"message": {"format": "ngsiv1"}, "batches": {"batch_size": 9}},
        {"message": {"format": "ngsi-ld"}, "batches": {"batch_size": 9}},
        {"message": {"format": "ngsi-ld", "envelope": "cloudevents-binary"}, "batches": {"batch_size": 9}},
        {"message": {**LINES, "envelope": "cloudevents-structured"}},
        {"message": {"key": "brand"}, "topics": {"keep": "history"}, "source": {"attributes": ["brand"]}},
        {"topics": {"config": {"min.insync.replicas": 2}, "replication_factor": 3}},
        {"topics": {"config": {"min.insync.replicas": 2}}},
        {"quality": {"rules": {"size": "error", "duplicate": "off"}}},
        {"quality": {"rules": {"size": "off"}}, "topics": {"data_model": "dm-by-attribute"}},
        {"source": {"service": ""}},
        {"source": {"service_path": ["/a", "/ab/#", "/b"]}},
        {"topics": {"naming": "fixed", "topics": ["FOO", "BAR"]}},
        {"topics": {"naming": "injective"}},
        {"topics": {"naming": "cygnus-legacy"}},
        {"topics": {"naming": "cygnus-legacy", "cygnus_version": "1.2.0"}},
        {"topics": {"cygnus_version": "1.10.0"}},
        {"topics": {"cygnus_version": "1.10.0"}, "message": {"key": "topic"}},
    ],
)
def test_possible_combinations_are_accepted(sections):
    assert publication(**sections).name == "vehicles"


@pytest.mark.parametrize(
    ("rules", "what"),
    [
        ({"size": "off"}, "quality.rules.size: `size: off`: Kafka accepts no larger record"),
        (
            {"topic-length": "warning"},
            "quality.rules.topic-length: `topic-length: warning`: Kafka accepts no such name",
        ),
        ({"body": "off"}, "quality.rules.body: `body: off`: what is not a JSON object has nothing that could be"),
    ],
)
def test_a_record_that_can_not_be_sent_can_not_be_let_through(rules, what):
    assert what in refusal(quality={"rules": rules})


def test_a_service_is_never_guessed():
    with pytest.raises(ValidationError, match="`service` is missing"):
        Publication.model_validate({"name": "a", "source": {"kind": "ngsi", "connection": "b"}})


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            {"registrations": True, "select": ["Codelist=ECB:*(*)"]},
            "source.registrations: `registrations: true`: no selector selects data registrations",
        ),
        ({"select": ["Codelist,Registration=ECB:*(*)"]}, "write `registrations: true`"),
    ],
)
def test_registrations_need_their_key_and_a_selector_that_selects_them(source, what):
    assert what in refusal(source={"kind": "sdmx", **source}, topics={"topics": ["FOO"]})


@pytest.mark.parametrize("select", [[], ["*"], ["*=ECB:*(*)"], ["Codelist=ECB:*(*)", "dataflow,Registration=ECB:*(*)"]])
def test_registrations_are_selected_like_structures(select):
    source = {"kind": "sdmx", "connection": "registry", "registrations": True, "select": select}
    Publication.model_validate({"name": "a", "source": source, "topics": {"topics": ["FOO"]}})


@pytest.mark.parametrize(
    ("sections", "what"),
    [
        ({"publish": {"dead_letter_topic": "aside"}}, "`dead_letter_topic` has no effect with `on_failure: stop`"),
        ({"publish": {"max_dead_letters": 5}}, "`max_dead_letters` has no effect with `on_failure: stop`"),
        (
            {
                "publish": {"on_failure": "dead-letter", "dead_letter_topic": "FOO"},
                "topics": {"naming": "fixed", "topics": ["FOO"]},
            },
            "FOO is a topic of the publication",
        ),
    ],
)
def test_dead_letters_need_a_topic_of_their_own(sections, what):
    assert what in refusal(**sections)


@pytest.mark.parametrize(
    ("publish", "topic"),
    [
        ({}, None),
        ({"on_failure": "dead-letter"}, "contexture.dead-letter.a"),
        ({"on_failure": "dead-letter", "dead_letter_topic": "aside"}, "aside"),
    ],
)
def test_dead_letters_go_to_a_topic_of_the_publication_unless_another_is_named(publish, topic):
    source = {"kind": "ngsi", "connection": "b", "service": "c"}
    assert Publication.model_validate({"name": "a", "source": source, "publish": publish}).dead_letter_topic == topic


def test_a_registry_sends_no_notifications():
    registry = {"kind": "sdmx", "mode": "notifications"}
    assert "source.mode: `mode: notifications` needs `kind: ngsi`" in refusal(source=registry)
    assert Publication.model_validate(
        {"name": "a", "source": {"kind": "ngsi", "connection": "b", "service": "c", "mode": "notifications"}}
    )


def test_a_registry_has_no_entities():
    found = refusal(source={"kind": "sdmx", "types": ["car"], "service": "a"}, topics={"naming": "cygnus"})
    assert "`types` needs `kind: ngsi`" in found
    assert "`service` needs `kind: ngsi`" in found
    assert "`naming: cygnus` needs `kind: ngsi`" in found


@pytest.mark.parametrize(
    ("topics", "what"),
    [
        ({"naming": "injective", "cygnus_version": "1.9.0"}, "`cygnus_version` has no effect on `naming: injective`"),
        ({"naming": "cygnus-legacy", "cygnus_version": "1.10"}, "did not name topics in the legacy way"),
        (
            {"naming": "injective", "enable_lowercase": True},
            "several identities to share a topic of `naming: injective`",
        ),
        (
            {"naming": "injective", "collision": "quarantine"},
            "`collision: quarantine` has no effect on `naming: injective`",
        ),
        ({"naming": "fixed", "topics": "A", "enable_grouping": True}, "has no effect on `naming: fixed`"),
    ],
)
def test_name_schemes_that_exclude_each_other_are_refused(topics, what):
    with pytest.raises(ValidationError) as caught:
        publication(topics=topics)
    assert what in str(caught.value)


@pytest.mark.parametrize("names", [{"naming": "cygnus-legacy"}, {"cygnus_version": "1.9.0"}])
def test_a_topic_that_several_identities_may_share_is_no_key_of_a_replica(names):
    with pytest.raises(ValidationError, match="several could share one"):
        publication(topics={"keep": "latest", **names}, message={"key": "topic"})
