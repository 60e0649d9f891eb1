"""The fast writer against a slow one that builds the text character by character."""

from __future__ import annotations

import json

import orjson
from hypothesis import given
from hypothesis import strategies as st

from contexture.records.messages import ngsi_bodies

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
HTML = "<>&='\u2028\u2029"
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    st.sampled_from("<>&='\u2028\u2029\u2020\\\"nul/\x1f\x7fé")
)
LITERALS = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True).map(
    lambda literal: orjson.Fragment(literal.encode())
)
VALUES = st.recursive(
    st.none() | st.booleans() | LITERALS | TEXTS | st.just("null"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def slow_text(text: str) -> str:
    escaped = (
        SHORT.get(character) or (f"\\u{ord(character):04x}" if character < " " or character in HTML else character)
        for character in text
    )
    return f'"{"".join(escaped)}"'


def slow_dumps(value: object) -> str:
    if isinstance(value, str):
        return slow_text(value)
    if isinstance(value, list):
        return f"[{','.join(map(slow_dumps, value))}]"
    if isinstance(value, dict):
        members = (f"{slow_text(name)}:{slow_dumps(member)}" for name, member in value.items() if member is not None)
        return f"{{{','.join(members)}}}"
    return orjson.dumps(value).decode()


@given(VALUES)
def test_the_fast_writer_writes_what_the_slow_one_does(value: object) -> None:
    assert ngsi_bodies.dumps(value).decode() == slow_dumps(value)


@given(TEXTS)
def test_what_is_written_reads_back_as_it_was(text: str) -> None:
    assert json.loads(ngsi_bodies.dumps({text: [text]})) == {text: [text]}
