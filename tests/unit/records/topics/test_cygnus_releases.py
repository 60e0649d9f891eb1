"""Topic names as older releases of Cygnus made them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from contexture.events import ContextIdentity
from contexture.records.topics import TopicNameError, TopicNamer


@dataclass(frozen=True)
class Naming:
    data_model: str = "dm-by-entity"
    cygnus_version: str | None = None
    naming: str = "cygnus"
    enable_lowercase: bool = False
    topics: tuple[str, ...] = ()
    enable_grouping: bool = False
    grouping_rules_content: str | None = None
    enable_name_mappings: bool = False
    name_mappings_content: str | None = None
    compat: str = "none"


CAR = ContextIdentity("vehicles", "/4wheels", "Car1", "car")


@pytest.mark.parametrize(
    ("data_model", "path", "name"),
    [
        ("dm-by-service", "/4wheels", "vehicles"),
        ("dm-by-service-path", "/4wheels", "vehicles_4wheels"),
        ("dm-by-service-path", "/", "vehicles"),
        ("dm-by-service-path", "/a/b", "vehicles_a_b"),
        ("dm-by-entity", "/4wheels", "vehicles_4wheels_car1_car"),
        ("dm-by-entity", "/", "vehicles_car1_car"),
        ("dm-by-attribute", "/4wheels", "vehicles_4wheels_car1_car_oil_level"),
    ],
)
def test_legacy_names_are_joined_by_underscores_in_lower_case(data_model: str, path: str, name: str) -> None:
    car = ContextIdentity("vehicles", path, "Car1", "car")
    assert TopicNamer(Naming(data_model, naming="cygnus-legacy")).name(car, "oil_level") == name
    assert TopicNamer(Naming(data_model, "1.2.0")).name(car, "oil_level") == name


def test_legacy_names_replace_every_special_character_and_leave_out_an_absent_type() -> None:
    odd = ContextIdentity("vehicles", "/", "urn:ngsi-ld:Car:É.1", "")
    assert TopicNamer(Naming(naming="cygnus-legacy")).name(odd) == "vehicles_urn_ngsi-ld_car__.1"


def test_a_legacy_name_may_have_64_characters_and_not_one_more() -> None:
    longest = ContextIdentity("vehicles", "/", "i" * 55, "")
    assert len(TopicNamer(Naming(naming="cygnus-legacy")).name(longest)) == 64
    with pytest.raises(TopicNameError, match=r"65 characters; Cygnus up to 1\.2 refused more than 64"):
        TopicNamer(Naming(naming="cygnus-legacy")).name(ContextIdentity("vehicles", "/", "i" * 56, ""))


@pytest.mark.parametrize("version", ["1.3", "1.4.0"])
def test_releases_1_3_and_1_4_left_the_slash_of_a_path_and_are_refused(version: str) -> None:
    with pytest.raises(TopicNameError, match="holds '/'"):
        TopicNamer(Naming(cygnus_version=version)).name(CAR)
    assert (
        TopicNamer(Naming("dm-by-service", version)).name(ContextIdentity("a=bxffff", "/", "", "")) == "axffffbxxffff"
    )


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("1.5", "vehiclesxffffx002f4wheelsxffffcar1xffffcar"),
        ("1.9.0", "vehiclesxffffx002f4wheelsxffffcar1xffffcar"),
        ("1.10.0", "vehiclesxffffx002f4wheelsxffffCar1xffffcar"),
        ("2.19.0", "vehiclesxffffx002f4wheelsxffffCar1xffffcar"),
        (None, "vehiclesxffffx002f4wheelsxffffCar1xffffcar"),
    ],
)
def test_releases_1_5_to_1_9_always_lower_case(version: str | None, name: str) -> None:
    assert TopicNamer(Naming(cygnus_version=version)).name(CAR) == name
