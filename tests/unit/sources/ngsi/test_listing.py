"""A page of entities, split into its items whatever one of them contains."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.sources.ngsi.entity import EntityError, parse_entity
from contexture.sources.ngsi.entity_head import split_entity_list


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (b'{"id":"\\ud800"}', "an incomplete character"),
        (b'{"id":"\\udc00x"}', "the other half"),
        (b'{"id":"i","n":{"value":NaN}}', "no number"),
        (b'{"id":"i","n":{"value":-Infinity}}', "no number either"),
        (b'{"id":"a\nb"}', "a line end in a text"),
        (b'{"id":"\xff"}', "no UTF-8"),
        (b'{"id":"\xed\xa0\x80"}', "an incomplete character in bytes"),
    ],
)
def test_what_is_wrong_with_one_entity_spares_the_others(item: bytes, name: str) -> None:
    good = b'{ "id" : "\xc3\xa9", "n":{"value":1.0E5} }'

    assert split_entity_list(b" [ " + good + b" ,\n" + item + b" , " + good + b" ] ") == [good, item, good], name

    with pytest.raises(EntityError) as refused:
        parse_entity(item, service="s")
    assert refused.value.context["rule"] == "body"


def test_numbers_may_be_of_any_length() -> None:
    long = b"1" * 5000
    assert split_entity_list(b"[" + long + b',"\\ud800"]') == [long, b'"\\ud800"']


@pytest.mark.parametrize("empty", [b"[]", b" [\n] "])
def test_an_empty_list_has_no_items(empty: bytes) -> None:
    assert split_entity_list(empty) == []


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[1", b"[1,", b"[1,]", b"[,1]", b"[1 2]", b"[1]x", b"[1][2]", b"[\\ud800]", b"<html>"]
)
def test_what_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        split_entity_list(body)


ITEMS = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(st.sampled_from('[]{},:"\\é '), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(ITEMS, max_size=5), st.booleans())
def test_items_come_as_they_were_written(items: list[object], odd: bool) -> None:
    written = [orjson.dumps(item) for item in items] + ([b'"\\udead"'] if odd else [])
    assert split_entity_list(b"[" + b" , ".join(written) + b"]") == written
