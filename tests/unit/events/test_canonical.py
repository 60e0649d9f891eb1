"""JSON read without changing its numbers, and the canonical form."""

from __future__ import annotations

import json
import re
from hashlib import sha256

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.events import canonical_json, content_hash, parse_json

INTEGERS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,29})\Z")
FRACTIONS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,22})\.[0-9]{1,22}\Z")
EXPONENTS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,2})(\.[0-9]{1,3})?[eE][+-]?[0-9]{1,2}\Z")
NUMBERS = st.one_of(INTEGERS, FRACTIONS, EXPONENTS)
NAMES = st.text(st.characters(codec="utf-8"), max_size=6)
OTHERS = st.one_of(NAMES.map(lambda text: orjson.dumps(text).decode()), st.sampled_from(["null", "true", "false"]))


def _array(members: list[str]) -> str:
    return f"[{','.join(members)}]"


def _object(members: dict[str, str]) -> str:
    return "{" + ",".join(f"{orjson.dumps(name).decode()}:{text}" for name, text in members.items()) + "}"


JSON_TEXTS = st.recursive(
    st.one_of(NUMBERS, OTHERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(_array), st.dictionaries(NAMES, inner, max_size=4).map(_object)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(JSON_TEXTS)
def test_every_number_is_written_again_as_it_was_read(text: str):
    assert orjson.dumps(parse_json(text.encode())) == text.encode()


@given(st.dictionaries(NAMES, NUMBERS, max_size=5), st.sampled_from(["", " ", "\n\t"]))
def test_white_space_changes_no_number(members: dict[str, str], space: str):
    spaced = (
        f"{space}{{{space}"
        + f"{space},{space}".join(
            f"{orjson.dumps(name).decode()}{space}:{space}{text}" for name, text in members.items()
        )
        + f"{space}}}{space}"
    )

    assert orjson.dumps(parse_json(spaced.encode())) == _object(members).encode()


@pytest.mark.parametrize(
    "literal", ["1.0", "1E5", "1.0E5", "12345678901234567890123", "-0", "-0.0", "1e-400", "0.10", "1E400", "-1e999"]
)
def test_a_literal_that_a_float_would_rewrite_is_kept(literal: str):
    assert orjson.dumps(parse_json(f'{{"value": {literal}}}'.encode())) == f'{{"value":{literal}}}'.encode()


def test_numbers_that_survive_are_python_numbers():
    assert parse_json(b'{"a":1,"b":1.5,"c":[true,null,"x"]}') == {"a": 1, "b": 1.5, "c": [True, None, "x"]}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"NaN", b"[1,]", b"\xff", b"[1E400,NaN]", b"[1E400,]", b"[" * 5000 + b"1.0"]
)
def test_what_is_no_json_is_refused(text: bytes):
    with pytest.raises(ValueError):
        parse_json(text)


@given(st.dictionaries(NAMES, st.one_of(NUMBERS, OTHERS), max_size=5), st.randoms(use_true_random=False))
def test_the_canonical_form_knows_no_order(members: dict[str, str], random):
    shuffled = list(members.items())
    random.shuffle(shuffled)

    first, second = (parse_json(_object({"nested": _object(dict(m))}).encode()) for m in (members.items(), shuffled))

    assert canonical_json(first) == canonical_json(second)
    assert content_hash(first) == content_hash(second)


def test_the_canonical_form_is_sorted_compact_and_keeps_literals():
    value = parse_json('{"b": 1.0, "a": {"ü": 1E5, "d": [2, 1]}}'.encode())

    assert canonical_json(value) == '{"a":{"d":[2,1],"ü":1E5},"b":1.0}'.encode()
    assert content_hash(value) == sha256('{"a":{"d":[2,1],"ü":1E5},"b":1.0}'.encode()).digest()


def test_other_literals_are_other_content():
    hashes = {content_hash(parse_json(text)) for text in (b"[1]", b"[1.0]", b"[1.00]", b"[1E0]")}

    assert len(hashes) == 4


@given(JSON_TEXTS)
def test_strings_and_structure_are_those_of_the_standard_library(text: str):
    without_numbers = re.sub(r'("(?:[^"\\]|\\.)*")|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', lambda m: m[1] or "0", text)

    assert parse_json(without_numbers.encode()) == json.loads(without_numbers)
