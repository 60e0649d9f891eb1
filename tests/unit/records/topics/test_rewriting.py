"""Grouping rules and name mappings in topic names, without and with the quirks of Cygnus 2.19."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from contexture.errors import ConfigurationError
from contexture.events import ContextIdentity
from contexture.publications.cygnus_names import GroupingRules, NameMappings, check_grouping_rule
from contexture.records.topics import TopicNamer


@dataclass(frozen=True)
class Naming:
    grouping_rules_content: str | None = None
    name_mappings_content: str | None = None
    compat: str = "none"
    data_model: str = "dm-by-entity"
    naming: str = "cygnus"
    cygnus_version: str | None = None
    enable_lowercase: bool = False
    topics: tuple[str, ...] = ()

    @property
    def enable_grouping(self) -> bool:
        return self.grouping_rules_content is not None

    @property
    def enable_name_mappings(self) -> bool:
        return self.name_mappings_content is not None


ROOM = ContextIdentity("hotel", "/floor1", "Room.12", "Room")
RULE = {
    "id": 1,
    "fields": ["entityId", "entityType"],
    "regex": r"Room\.(\d*)Room",
    "destination": "numeric_rooms",
    "fiware_service_path": "/rooms",
}


def grouping(*rules: object) -> str:
    return json.dumps({"grouping_rules": rules})


def mappings(**service: object) -> str:
    return json.dumps({"serviceMappings": [service]})


def of_entity(**entity: object) -> str:
    return mappings(servicePathMappings=[{"newServicePath": "/new", "entityMappings": [entity]}])


def test_entities_of_a_rule_share_its_destination() -> None:
    namer = TopicNamer(Naming(grouping(RULE)))
    assert namer.name(ROOM) == "hotelxffffx002froomsxffffnumeric_rooms"
    other = ContextIdentity("hotel", "/", "Hall", "Room")
    assert namer.name(other) == "hotelxffffx002fxffffHallxffffRoom"


def test_the_first_rule_wins_and_matches_the_whole() -> None:
    part = {**RULE, "regex": "Room", "destination": "part"}
    second = {**RULE, "regex": ".*", "destination": "second", "fields": ["servicePath"]}
    assert TopicNamer(Naming(grouping(part, RULE, second))).name(ROOM) == "hotelxffffx002froomsxffffnumeric_rooms"


def test_the_destination_is_encoded_as_an_entity_and_replaces_nothing_in_it() -> None:
    rule = {**RULE, "destination": "a=b/$1"}
    assert TopicNamer(Naming(grouping(rule))).name(ROOM) == "hotelxffffx002froomsxffffaxffffbx002fx00241"


@pytest.mark.parametrize(
    ("fields", "regex"),
    [
        (["entityId"], "Room.12"),
        (["entityType"], "Room"),
        (["servicePath"], "/floor1"),
        (["servicePath", "entityType", "entityId"], "/floor1RoomRoom.12"),
        (["entityType", "entityId", "servicePath"], "RoomRoom.12/floor1"),
    ],
)
def test_fields_are_joined_as_they_are_listed(fields: list[str], regex: str) -> None:
    rules = grouping({**RULE, "fields": fields, "regex": regex})
    assert TopicNamer(Naming(rules)).name(ROOM) == "hotelxffffx002froomsxffffnumeric_rooms"


def test_unknown_fields_add_nothing_in_cygnus_and_are_refused_here() -> None:
    rules = grouping({**RULE, "fields": ["entityName", "entityId"], "regex": "Room.12"})
    assert GroupingRules.from_json(rules, compat=True).find(ROOM) is not None
    with pytest.raises(ConfigurationError, match="names the field 'entityName'; known are entityId, entityType"):
        GroupingRules.from_json(rules)


def test_an_attribute_of_a_grouped_entity_keeps_its_name_and_the_service_stays() -> None:
    namer = TopicNamer(Naming(grouping(RULE), data_model="dm-by-attribute"))
    assert namer.name(ROOM, "temp=") == "hotelxffffx002froomsxffffnumeric_roomsxfffftempxffff"
    assert namer.header_service(ROOM) == "hotel"


@pytest.mark.parametrize(
    ("model", "name"), [("dm-by-service", "hotel"), ("dm-by-service-path", "hotelxffffx002frooms")]
)
def test_a_rule_decides_the_path_in_the_other_data_models_too(model: str, name: str) -> None:
    assert TopicNamer(Naming(grouping(RULE), data_model=model)).name(ROOM) == name


def test_comment_lines_and_empty_lines_do_not_count() -> None:
    assert len(GroupingRules.from_json(f"# rules\n\n  # more\n{grouping(RULE)}\n").rules) == 1


def test_without_a_match_cygnus_2_19_joined_id_and_type_by_an_underscore() -> None:
    car = ContextIdentity("vehicles", "/", "car1", "car")
    assert TopicNamer(Naming(grouping(RULE), compat="cygnus-2.19")).name(car) == "vehiclesxffffx002fxffffcar1_car"
    assert TopicNamer(Naming(grouping(RULE))).name(car) == "vehiclesxffffx002fxffffcar1xffffcar"


def test_an_absent_type_is_the_text_null_in_cygnus_only() -> None:
    rules = grouping({**RULE, "regex": "Room.12null"})
    untyped = ContextIdentity("hotel", "/", "Room.12", "")
    assert GroupingRules.from_json(rules).find(untyped) is None
    assert GroupingRules.from_json(rules, compat=True).find(untyped) is not None


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        (RULE, 0),
        ({name: value for name, value in RULE.items() if name != "regex"}, 1),
        ({**RULE, "destination": ""}, 2),
        ({**RULE, "fields": []}, 2),
        ({**RULE, "comment": "x"}, 3),
        ({**RULE, "fiware_service_path": "rooms"}, 4),
    ],
)
def test_the_validity_codes_are_those_of_cygnus(rule: dict[str, object], code: int) -> None:
    assert check_grouping_rule(rule) == code
    if code in {1, 2, 4}:
        with pytest.raises(ConfigurationError, match=rf"grouping rule 2 .*\(code {code}\)"):
            GroupingRules.from_json(grouping(RULE, rule))
        assert GroupingRules.from_json(grouping(RULE, rule), compat=True).dropped == (2,)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"id": 1, "fields": ["entityId"]}, "lacks regex, destination, fiware_service_path (code 1)"),
        ({**RULE, "destination": "", "fields": []}, "has no content in fields, destination (code 2)"),
        ({**RULE, "fiware_service_path": "rooms"}, "has the path 'rooms', which has no leading slash (code 4)"),
        ({**RULE, "regex": "(a"}, "the regular expression '(a' cannot be used: missing )"),
    ],
)
def test_what_is_wrong_with_a_rule_is_named(rule: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        GroupingRules.from_json(grouping(rule))
    assert message in caught.value.message


@pytest.mark.parametrize("rule", [{**RULE, "id": "1"}, {**RULE, "regex": "("}, {**RULE, "regex": "[a&&b]"}])
def test_what_stopped_cygnus_at_its_start_is_refused_also_in_compat(rule: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        GroupingRules.from_json(grouping(rule), compat=True)


def test_mappings_change_service_path_entity_and_attribute() -> None:
    text = mappings(
        originalService="^(ho.*)",
        newService="new_$1",
        servicePathMappings=[
            {
                "originalServicePath": "/floor(.*)",
                "newServicePath": "/f$1",
                "entityMappings": [
                    {
                        "originalEntityId": r"Room\.(.+)",
                        "newEntityId": "r$1",
                        "originalEntityType": "Room",
                        "newEntityType": "NewRoom",
                        "attributeMappings": [
                            {
                                "originalAttributeName": "temp.*",
                                "originalAttributeType": "Number",
                                "newAttributeName": "t",
                            }
                        ],
                    }
                ],
            }
        ],
    )
    namer = TopicNamer(Naming(None, text, data_model="dm-by-attribute"))
    assert namer(ROOM, "temperature", "Number") == ("new_hotelxffffx002ff1xffffr12xffffNewRoomxfffft",)
    assert namer.name(ROOM, "temperature", "Text") == "new_hotelxffffx002ff1xffffr12xffffNewRoomxfffftemperature"
    assert namer.header_service(ROOM, "temperature") == "new_hotel"
    car = ContextIdentity("vehicles", "/", "car1", "car")
    assert namer.name(car, "speed") == "vehiclesxffffx002fxffffcar1xffffcarxffffspeed"
    assert namer.header_service(car) == "vehicles"


def test_absent_originals_are_any_name_and_absent_new_names_change_nothing() -> None:
    mapped = NameMappings.from_json(of_entity(newEntityId="one", attributeMappings=[{"newAttributeName": "b"}]))
    assert mapped.map(ROOM, "a") == (ContextIdentity("hotel", "/new", "one", "Room"), "b")
    only_type = NameMappings.from_json(of_entity(newEntityType="Zimmer"))
    assert only_type.map(ROOM, "a") == (ContextIdentity("hotel", "/new", "Room.12", "Zimmer"), "a")


def test_types_and_attributes_are_literal_and_the_others_replacements() -> None:
    entity = {
        "originalEntityId": "(.+)",
        "newEntityId": "id-$1",
        "originalEntityType": "(.+)",
        "newEntityType": "type-$1",
        "attributeMappings": [{"originalAttributeName": "(.+)", "newAttributeName": "name-$1"}],
    }
    mapped = NameMappings.from_json(of_entity(**entity)).map(ROOM, "a")
    assert mapped == (ContextIdentity("hotel", "/new", "id-Room.12", "type-$1"), "name-$1")


@pytest.mark.parametrize("compat", [False, True])
def test_the_first_service_that_matches_counts_also_without_paths(compat: bool) -> None:
    services = [{"originalService": "hot.*", "newService": "first"}, {"newService": "second"}]
    mapped = NameMappings.from_json(json.dumps({"serviceMappings": services}), compat=compat)
    assert mapped.map(ROOM, None).identity == ContextIdentity("first", "/floor1", "Room.12", "Room")


def test_a_path_without_entity_mappings_changes_and_never_in_cygnus() -> None:
    text = mappings(servicePathMappings=[{"newServicePath": "/new", "entityMappings": []}])
    assert NameMappings.from_json(text).map(ROOM, None).identity.service_path == "/new"
    assert NameMappings.from_json(text, compat=True).map(ROOM, None).identity.service_path == "/floor1"


def test_an_entity_without_a_type_is_mapped_like_others() -> None:
    untyped = ContextIdentity("hotel", "/floor1", "Room.12", "")
    mapped = NameMappings.from_json(of_entity(originalEntityId="Room.*", newEntityId="r"), compat=True)
    assert mapped.map(untyped, None).identity == ContextIdentity("hotel", "/new", "r", "")


@pytest.mark.parametrize(
    ("member", "meant"),
    [
        ("orginalEntityId", "originalEntityId"),
        ("OriginalEntityId", "originalEntityId"),
        ("newEntityTypes", "newEntityType"),
        ("attributesMappings", "attributeMappings"),
    ],
)
def test_a_misspelt_member_is_refused_before_it_matches_everything(member: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=f"unknown member '{member}'.*write '{meant}'"):
        NameMappings.from_json(of_entity(**{member: "x"}))


def test_members_that_are_comments_do_not_count() -> None:
    assert NameMappings.from_json(mappings(comment="hotels of the coast", newService="h")).service("hotel") == "h"


def test_any_name_is_replaced_once_and_twice_in_cygnus_only() -> None:
    text = mappings(originalService=".*", newService="a")
    assert NameMappings.from_json(text).service("hotel") == "a"
    assert NameMappings.from_json(text, compat=True).service("hotel") == "aa"


def test_a_path_is_mapped_by_itself_and_by_a_matching_type_in_cygnus_only() -> None:
    other_type = of_entity(originalEntityType="Hall")
    assert NameMappings.from_json(other_type).map(ROOM, None).identity.service_path == "/new"
    assert NameMappings.from_json(other_type, compat=True).map(ROOM, None).identity.service_path == "/floor1"
    other_id = of_entity(originalEntityId="Hall", newEntityId="x")
    mapped = NameMappings.from_json(other_id, compat=True).map(ROOM, None).identity
    assert mapped == ContextIdentity("hotel", "/new", "Room.12", "Room")


def test_attributes_of_an_entity_that_does_not_match_stay_and_change_in_cygnus_only() -> None:
    renamed = [{"originalAttributeName": "a", "newAttributeName": "b"}]
    text = of_entity(originalEntityId="Hall", attributeMappings=renamed)
    assert NameMappings.from_json(text).map(ROOM, "a").attribute == "a"
    assert NameMappings.from_json(text, compat=True).map(ROOM, "a").attribute == "b"


@pytest.mark.parametrize("compat", ["none", "cygnus-2.19"])
def test_grouping_wins_over_mappings_for_path_and_entity(compat: str) -> None:
    text = mappings(
        newService="mapped",
        servicePathMappings=[{"newServicePath": "/p", "entityMappings": [{"newEntityId": "x"}]}],
    )
    namer = TopicNamer(Naming(grouping(RULE), text, compat))
    assert namer.name(ROOM) == "mappedxffffx002froomsxffffnumeric_rooms"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        "{}",
        mappings(originalService="("),
        mappings(newService="a$"),
        mappings(servicePathMappings=[1]),
        mappings(servicePathMappings={}),
    ],
)
def test_a_wrong_mappings_file_is_refused_whole(text: str) -> None:
    with pytest.raises(ConfigurationError):
        NameMappings.from_json(text)
