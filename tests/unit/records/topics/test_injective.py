"""Injective names: different parts have different names, and names can be read back."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contexture.events import ContextIdentity
from contexture.records.topics import MAXIMUM_LENGTH, TopicNamer, check_legal
from contexture.records.topics.encodings import encode_injective


@dataclass(frozen=True)
class Naming:
    data_model: str = "dm-by-entity"
    naming: str = "injective"
    cygnus_version: str | None = None
    enable_lowercase: bool = False
    topics: tuple[str, ...] = ()
    enable_grouping: bool = False
    grouping_rules_content: str | None = None
    enable_name_mappings: bool = False
    name_mappings_content: str | None = None
    compat: str = "none"


PART = st.text(st.characters(categories=None), max_size=6) | st.text(st.sampled_from("_-xuspkwa0f/.:é😀"), max_size=6)
PARTS = st.sampled_from([1, 2, 4, 5]).flatmap(lambda count: st.tuples(*[PART] * count))

TOKEN = re.compile("(__)|(_[uspk])|_([0-9a-f]{2})|_w([0-9a-f]{4})|_x([0-9a-f]{6})|([A-Za-z0-9-]+)")
CHARACTERS = {"_u": "_", "_s": "/", "_p": ".", "_k": ":"}


def parts_of(name: str) -> tuple[str, ...]:
    """Reads a name back, which shows that no other parts have it."""
    parts, position = [""], 0
    while position < len(name):
        token = TOKEN.match(name, position)
        assert token is not None, name
        separator, short, byte, unit, point, plain = token.groups()
        if separator:
            parts.append("")
        elif plain or short:
            parts[-1] += plain or CHARACTERS[short]
        else:
            parts[-1] += chr(int(byte or unit or point, 16))
        position = token.end()
    return tuple(parts)


@pytest.mark.parametrize(
    ("data_model", "name"),
    [
        ("dm-by-service", "vehicles"),
        ("dm-by-service-path", "vehicles___s4wheels"),
        ("dm-by-entity", "vehicles___s4wheels__urn_kngsi-ld_kCar_k1__Car"),
        ("dm-by-attribute", "vehicles___s4wheels__urn_kngsi-ld_kCar_k1__Car__oil_ulevel"),
    ],
)
def test_each_data_model_has_its_name(data_model: str, name: str) -> None:
    car = ContextIdentity("vehicles", "/4wheels", "urn:ngsi-ld:Car:1", "Car")
    assert TopicNamer(Naming(data_model)).name(car, "oil_level") == name


@pytest.mark.parametrize(
    ("text", "name"),
    [("a.b", "a_pb"), ("a b", "a_20b"), ("é", "_e9"), ("中", "_w4e2d"), ("😀", "_x01f600"), ("\ud83d", "_wd83d")],
)
def test_special_characters_are_escaped(text: str, name: str) -> None:
    assert encode_injective((text,)) == name


@given(PARTS, PARTS)
@example(("a=b", "", "c", ""), ("a", "", "b=c", ""))
@example(("a_", "b"), ("a", "_b"))
def test_different_parts_have_different_names_also_for_a_broker_that_takes_dots_for_underscores(
    one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    assert (encode_injective(one).replace(".", "_") == encode_injective(other).replace(".", "_")) == (one == other)


@given(PARTS)
def test_a_name_is_legal_and_reads_back(parts: tuple[str, ...]) -> None:
    name = encode_injective(parts)
    assert name == "" or check_legal(name) == name
    assert parts_of(name) == parts


@given(st.integers(240, 400), st.sampled_from("a_-/"))
def test_a_long_name_is_cut_and_still_one_identitys_alone(length: int, filler: str) -> None:
    one, other = encode_injective(("s", filler * length)), encode_injective(("s", filler * length + "b"))
    assert one != other
    assert max(len(one), len(other)) <= MAXIMUM_LENGTH


def test_a_name_of_249_characters_is_whole_and_the_next_one_is_cut() -> None:
    assert encode_injective(("a" * 249,)) == "a" * 249
    digest = "3f3e35e0a775d9b1d5ec2eccca06381c41efedeb59d5ac5491ebe9696cb0887b"
    assert encode_injective(("a" * 250,)) == "a" * 183 + "_-" + digest
