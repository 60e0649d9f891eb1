"""Topic names of the four data models and of fixed topics, with the values Cygnus gives them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from contexture.errors import ConfigurationError, DefectError
from contexture.events import ContextIdentity
from contexture.records.topics import TopicNameError, TopicNamer


@dataclass(frozen=True)
class Naming:
    data_model: str = "dm-by-entity"
    naming: str = "cygnus"
    enable_lowercase: bool = False
    topics: tuple[str, ...] = ()
    cygnus_version: str | None = None
    enable_grouping: bool = False
    grouping_rules_content: str | None = None
    enable_name_mappings: bool = False
    name_mappings_content: str | None = None
    compat: str = "none"


CAR = ContextIdentity("vehicles", "/4wheels", "car1", "car")
ROOT_CAR = ContextIdentity("vehicles", "/", "car1", "car")
NESTED_CAR = ContextIdentity("vehicles", "/a/b", "car1", "car")


@pytest.mark.parametrize(
    ("data_model", "identity", "name"),
    [
        ("dm-by-service", CAR, "vehicles"),
        ("dm-by-service", ROOT_CAR, "vehicles"),
        ("dm-by-service-path", CAR, "vehiclesxffffx002f4wheels"),
        ("dm-by-service-path", ROOT_CAR, "vehiclesxffffx002f"),
        ("dm-by-service-path", NESTED_CAR, "vehiclesxffffx002fax002fb"),
        ("dm-by-entity", CAR, "vehiclesxffffx002f4wheelsxffffcar1xffffcar"),
        ("dm-by-entity", ROOT_CAR, "vehiclesxffffx002fxffffcar1xffffcar"),
        ("dm-by-entity", NESTED_CAR, "vehiclesxffffx002fax002fbxffffcar1xffffcar"),
        ("dm-by-attribute", CAR, "vehiclesxffffx002f4wheelsxffffcar1xffffcarxffffspeed"),
        ("dm-by-attribute", ROOT_CAR, "vehiclesxffffx002fxffffcar1xffffcarxffffspeed"),
    ],
)
def test_each_data_model_names_topics_as_cygnus_does(data_model: str, identity: ContextIdentity, name: str) -> None:
    assert TopicNamer(Naming(data_model)).name(identity, "speed") == name


@pytest.mark.parametrize(
    ("entity_id", "entity_type", "name"),
    [
        ("car1", "", "sxffffx002fxffffcar1"),
        ("", "car", "sxffffx002fxffffcar"),
        ("a=b", "c", "sxffffx002fxffffaxffffbxffffc"),
        ("a", "b=c", "sxffffx002fxffffaxffffbxffffc"),
        ("boxffffcar", "", "sxffffx002fxffffboxxffffcar"),
        ("box", "", "sxffffx002fxffffbox"),
    ],
)
def test_an_absent_id_or_type_leaves_no_dangling_concatenator(entity_id: str, entity_type: str, name: str) -> None:
    assert TopicNamer(Naming()).name(ContextIdentity("s", "/", entity_id, entity_type)) == name


def test_an_id_that_holds_the_joiner_shares_a_topic_with_an_entity_that_has_a_type() -> None:
    assert TopicNamer(Naming()).name(ContextIdentity("s", "/", "box", "car")) == "sxffffx002fxffffboxxffffcar"
    assert TopicNamer(Naming()).name(ContextIdentity("s", "/", "boxffffcar", "")) == "sxffffx002fxffffboxxffffcar"


def test_an_absent_type_leaves_no_dangling_concatenator_before_the_attribute() -> None:
    identity = ContextIdentity("s", "/", "car1", "")
    assert TopicNamer(Naming("dm-by-attribute")).name(identity, "speed") == "sxffffx002fxffffcar1xffffspeed"


def test_lower_case_is_applied_last_and_only_when_asked() -> None:
    identity = ContextIdentity("Vehicles", "/4Wheels", "É1xFFFF", "Car")
    assert TopicNamer(Naming()).name(identity) == "Vehiclesxffffx002f4Wheelsxffffx00c91xxFFFFxffffCar"
    lowered = TopicNamer(Naming(enable_lowercase=True)).name(identity)
    assert lowered == "vehiclesxffffx002f4wheelsxffffx00c91xxffffxffffcar"


def test_fixed_topics_are_used_as_they_are_and_may_be_several() -> None:
    naming = Naming(naming="fixed", topics=("FOO", "BAR"))
    assert TopicNamer(naming)(CAR) == ("FOO", "BAR")
    assert TopicNamer(Naming(naming="fixed", topics=("FOO",), enable_lowercase=True))(CAR) == ("foo",)
    assert TopicNamer(Naming(naming="fixed", topics=("FOO",))).name(CAR) == "FOO"


def test_several_fixed_topics_are_not_one() -> None:
    with pytest.raises(TopicNameError, match="2 fixed topics"):
        TopicNamer(Naming(naming="fixed", topics=("FOO", "BAR"))).name(CAR)


@pytest.mark.parametrize("topic", ["", ".", "..", "a b", "é", "x" * 250])
def test_an_illegal_fixed_topic_is_refused_when_the_namer_is_made(topic: str) -> None:
    with pytest.raises(TopicNameError):
        TopicNamer(Naming(naming="fixed", topics=("FOO", topic)))


@pytest.mark.parametrize("service", ["", ".", ".."])
def test_reserved_names_that_upstream_builds_are_refused(service: str) -> None:
    with pytest.raises(TopicNameError):
        TopicNamer(Naming("dm-by-service")).name(ContextIdentity(service, "/", "car1", "car"))


def test_a_service_of_two_characters_is_a_topic() -> None:
    assert TopicNamer(Naming("dm-by-service")).name(ContextIdentity("ab", "/", "car1", "car")) == "ab"


def test_a_name_may_have_249_characters_and_not_one_more() -> None:
    head = "vehiclesxffffx002fxffff"
    longest = ContextIdentity("vehicles", "/", "i" * (249 - len(head)), "")
    assert len(TopicNamer(Naming()).name(longest)) == 249
    with pytest.raises(TopicNameError, match="250 characters; Kafka accepts 249"):
        TopicNamer(Naming()).name(ContextIdentity("vehicles", "/", longest.id + "i", ""))


def test_the_longest_name_that_cygnus_accepted_is_refused_by_its_length() -> None:
    longest = ContextIdentity("s" * 50, "/" + "p" * 49, "i" * 256, "t" * 256)
    with pytest.raises(TopicNameError, match="has 892 characters; Kafka accepts 249"):
        TopicNamer(Naming("dm-by-attribute")).name(longest, "a" * 256)


def test_ids_that_differ_in_case_alone_share_a_topic_in_lower_case() -> None:
    names = {
        TopicNamer(Naming(enable_lowercase=True)).name(ContextIdentity("s", "/", text, ""))
        for text in ("xFFFF", "xffff")
    }
    assert names == {"sxffffx002fxffffxxffff"}


def test_the_type_of_an_attribute_is_no_part_of_its_topic() -> None:
    assert TopicNamer(Naming("dm-by-attribute")).name(CAR, "speed", "Number") == (
        "vehiclesxffffx002f4wheelsxffffcar1xffffcarxffffspeed"
    )


def test_an_entity_without_id_and_type_has_no_topic() -> None:
    with pytest.raises(TopicNameError, match="without id and type"):
        TopicNamer(Naming()).name(ContextIdentity("vehicles", "/", "", ""))


def test_an_attribute_without_a_name_has_no_topic() -> None:
    with pytest.raises(TopicNameError, match="attribute without a name"):
        TopicNamer(Naming("dm-by-attribute")).name(CAR, "")


def test_by_attribute_without_an_attribute_is_a_defect_of_the_caller() -> None:
    with pytest.raises(DefectError):
        TopicNamer(Naming("dm-by-attribute")).name(CAR)


@pytest.mark.parametrize(
    "naming", [Naming(naming="other"), Naming("dm-by-entity-id"), Naming(naming="fixed", topics=())]
)
def test_what_is_not_supported_is_a_configuration_error(naming: Naming) -> None:
    with pytest.raises(ConfigurationError):
        TopicNamer(naming)


def test_a_namer_keeps_entities_of_different_paths_and_services_apart() -> None:
    namer = TopicNamer(Naming())
    identities = [CAR, ROOT_CAR, ContextIdentity("bikes", "/", "car1", "car"), CAR]
    assert [namer.name(identity) for identity in identities] == [
        "vehiclesxffffx002f4wheelsxffffcar1xffffcar",
        "vehiclesxffffx002fxffffcar1xffffcar",
        "bikesxffffx002fxffffcar1xffffcar",
        "vehiclesxffffx002f4wheelsxffffcar1xffffcar",
    ]
