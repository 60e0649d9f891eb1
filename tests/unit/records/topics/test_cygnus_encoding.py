"""`cygnus.encode_cygnus`: the table of the encoding, literally, and a slow reference that follows its wording."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contexture.records.topics import encodings

PLAIN = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz0123456789_-.")
HEXADECIMAL = set("0123456789abcdefABCDEF")
ANY_TEXT = st.text(st.characters(categories=None))
NEAR_ESCAPES = st.text(st.sampled_from("xX=/afAF09g\uffff\ud83d\ude00😀é. "))


def slow_encode(text: str) -> str:
    """Unit by unit, as the encoding is described."""
    raw = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(raw[start : start + 2], "big") for start in range(0, len(raw), 2)]
    return "".join(_slow_unit(units, position) for position in range(len(units)))


def _slow_unit(units: list[int], position: int) -> str:
    character = chr(units[position])
    following = [chr(unit) for unit in units[position + 1 : position + 5]]
    if character == "x":
        return "xx" if len(following) == 4 and set(following) <= HEXADECIMAL else "x"
    if character in PLAIN:
        return character
    return "xffff" if character == "=" else f"x{units[position]:04x}"


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("", ""),
        ("vehicles", "vehicles"),
        ("/", "x002f"),
        ("/4wheels", "x002f4wheels"),
        ("/a/b", "x002fax002fb"),
        ("car1=car", "car1xffffcar"),
        ("A-Z_a.z09", "A-Z_a.z09"),
        ("É", "x00c9"),
        ("urn:ngsi-ld:Car:1", "urnx003angsi-ldx003aCarx003a1"),
        ("xFFFF", "xxFFFF"),
        ("XFFFF", "XFFFF"),
        ("xadded2", "xxadded2"),
        ("x002", "x002"),
        ("box7", "box7"),
        ("xx0000", "xxx0000"),
        ("x0000x1111", "xx0000xx1111"),
        ("x/0000", "xx002f0000"),
        ("\U0001f600", "xd83dxde00"),
        ("\ud83d", "xd83d"),
        ("\ude00x", "xde00x"),
        ("\uffff", "xffff"),
        ("x\uff11\uff11\uff11\uff11", "xxff11xff11xff11xff11"),
        ("\x00", "x0000"),
        ("x0000é", "xx0000x00e9"),
        ("e\u0301", "ex0301"),  # no normalisation: not the same as é
        ("-_.", "-_."),
        ("xabcg", "xabcg"),
        ("xABCD", "xxABCD"),
        (" \t\n", "x0020x0009x000a"),
        ("ＡÀ", "xff21x00c0"),
    ],
)
def test_text_is_encoded_as_upstream_does(text: str, encoded: str) -> None:
    assert encodings.encode_cygnus(text) == encoded


@pytest.mark.parametrize(
    ("one", "other", "encoded"),
    [("x/", "x002f", "xx002f"), ("xá", "x00e1", "xx00e1"), ("x=", "xffff", "xxffff"), ("\uffff", "=", "xffff")],
)
def test_the_known_collisions_are_kept(one: str, other: str, encoded: str) -> None:
    assert encodings.encode_cygnus(one) == encodings.encode_cygnus(other) == encoded


@pytest.mark.parametrize(("text", "times"), [("x", 1), ("=", 5), ("é", 5), ("中", 5), ("😀", 10)])
def test_a_character_takes_up_to_five_or_ten_characters(text: str, times: int) -> None:
    assert len(encodings.encode_cygnus(text * 50)) == 50 * times


@given(ANY_TEXT | NEAR_ESCAPES)
@example("x" * 5)
@example("\ud83d\ude00")
def test_every_text_is_encoded_as_the_slow_reference_does(text: str) -> None:
    assert encodings.encode_cygnus(text) == slow_encode(text)


@given(ANY_TEXT | NEAR_ESCAPES)
def test_only_characters_that_kafka_accepts_come_out(text: str) -> None:
    assert set(encodings.encode_cygnus(text)) <= PLAIN | {"x"}


@given(ANY_TEXT, ANY_TEXT)
def test_an_entity_is_encoded_alike_whole_or_in_parts(entity_id: str, entity_type: str) -> None:
    parts = encodings.encode_cygnus(entity_id) + encodings.CONCATENATOR + encodings.encode_cygnus(entity_type)
    assert encodings.encode_cygnus(f"{entity_id}={entity_type}") == parts
