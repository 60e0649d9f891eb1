"""What holds for every message: nothing is lost, and the hash shows content and only content."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from html import escape
from io import BytesIO
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import structures
from contexture.events import content_hash, parse_json
from contexture.sources.sdmx import Artefact, StructureMessageError, split

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["Code", "Name", "Annotation", "Extra"])
# XML 1.0 (2.2) knows neither surrogates, nor most controls, nor the last two code points of the first plane.
CHARACTERS = st.characters(
    codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff", include_characters="\t\n"
)
TEXTS = st.text(CHARACTERS, max_size=12)
ATTRIBUTES = st.dictionaries(st.sampled_from(["id", "value", "uri", "lang"]), TEXTS, max_size=3)
ELEMENTS = st.recursive(
    st.tuples(NAMES, ATTRIBUTES, TEXTS),
    lambda inner: st.tuples(NAMES, ATTRIBUTES, st.lists(inner, min_size=1, max_size=4)),
    max_leaves=12,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


LAW = settings(max_examples=50, deadline=None)


class Writing:
    """How a tree is written: what may differ without a difference in content."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.prefix = draw(st.sampled_from(["str", "s", "structure", ""]))
        self.space = draw(st.sampled_from(["", "\n  ", "\t", "<!-- note -->", "<?app x?>"]))
        self.quote = draw(st.sampled_from("\"'"))
        self.reverse = draw(st.booleans())
        self.cdata = draw(st.booleans())
        self.header = draw(st.sampled_from(["M1", "M2"]))

    def element(self, tree: tuple) -> str:
        name, attributes, inside = tree
        tag = f"{self.prefix}:{name}" if self.prefix else name
        listed = list(attributes.items())
        written = "".join(f" {key}={self._value(value)}" for key, value in (listed[::-1] if self.reverse else listed))
        if isinstance(inside, str):
            return f"<{tag}{written}>{self._text(inside)}</{tag}>" if inside else f"<{tag}{written}/>"
        return f"<{tag}{written}>{self.space}{''.join(self.element(each) + self.space for each in inside)}</{tag}>"

    def message(self, trees: list[tuple]) -> bytes:
        artefacts = self.space.join(self.element(("Codelist", *tree[1:])) for tree in trees)
        prefixes = ("mes", self.prefix, "com")
        return structures.ml("2.1", ("Codelists", artefacts), prefixes=prefixes, header=self.header).encode()

    def _value(self, value: str) -> str:
        text = escape(value).replace("\n", "&#10;").replace("\t", "&#9;")
        return f"{self.quote}{text}{self.quote}"

    def _text(self, text: str) -> str:
        if self.cdata:
            return "<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>"
        return escape(text, quote=self.reverse)


TREES = st.lists(ELEMENTS, max_size=4)
WRITINGS = st.composite(Writing)()


def hashes(message: bytes) -> list[bytes]:
    return [artefact.content_hash for artefact in split(BytesIO(message))]


@LAW
@given(TREES, WRITINGS, WRITINGS)
def test_the_hash_of_ml_is_that_of_the_content_however_it_is_written(trees, one, other):
    assert hashes(one.message(trees)) == hashes(other.message(trees))


@LAW
@given(ELEMENTS, ELEMENTS, WRITINGS)
def test_other_content_of_ml_has_another_hash(one, other, writing):
    first, second = hashes(writing.message([one, other]))
    assert (first == second) == (content(one) == content(other))


def content(tree: tuple) -> object:
    """What counts of a tree below its own name."""
    _, attributes, inside = tree
    return (attributes, inside if isinstance(inside, str) else [(each[0], content(each)) for each in inside])


@LAW
@given(TREES, WRITINGS, st.integers(1, 400))
def test_every_artefact_of_ml_is_its_bytes_however_they_arrive(trees, writing, size):
    message = writing.message(trees)
    written = [writing.element(("Codelist", *tree[1:])).encode() for tree in trees]
    found = list(split(Dripping(message, size)))
    assert [artefact.content for artefact in found] == written
    assert found == list(split(BytesIO(message)))
    for artefact in found:
        same_in_its_own_message(artefact)


@LAW
@given(TREES, WRITINGS, st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]))
def test_the_encoding_of_ml_is_no_content(trees, writing, encoding):
    text = writing.message(trees).decode().replace('encoding="UTF-8"', "")
    assert hashes(text.encode(encoding)) == hashes(text.encode())


@LAW
@given(st.lists(st.dictionaries(TEXTS, VALUES, max_size=5), max_size=4), st.integers(1, 400), st.booleans())
def test_every_artefact_of_json_is_its_bytes_however_they_arrive(objects, size, indented):
    written = [json.dumps(each, indent=1 if indented else None, ensure_ascii=indented) for each in objects]
    message = (
        f'{{"meta": {json.dumps(structures.meta("2.0"))}, "data": {{"codelists": [{" , ".join(written)}]}}}}'.encode()
    )
    found = list(split(Dripping(message, size)))
    assert [artefact.content.decode() for artefact in found] == written
    for artefact in found:
        same_in_its_own_message(artefact)


@LAW
@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_the_hash_of_json_is_that_of_its_canonical_form(members):
    raw = json.dumps(members, indent=1)
    [artefact] = split(BytesIO(f'{{"meta": {{}}, "data": {{"codelists": [{raw}]}}}}'.encode()))
    turned = json.dumps(dict(reversed(members.items())), ensure_ascii=False)
    [other] = split(BytesIO(f'{{"data": {{"codelists": [{turned}]}}, "meta": {{"id": "other"}}}}'.encode()))
    assert artefact.content_hash == other.content_hash == content_hash(parse_json(raw.encode()))


@settings(max_examples=5, deadline=None)
@given(st.integers(2_000, 12_000))
def test_the_hash_of_a_long_list_is_the_same_although_it_is_read_in_pieces(codes):
    members = {"codes": [{"id": f"C{number}", "number": number * 1.5} for number in range(codes)], "id": "A"}
    raw = json.dumps(members, indent=1)
    [artefact] = split(BytesIO(f'{{"meta": {{}}, "data": {{"codelists": [{raw}]}}}}'.encode()))
    assert artefact.content_hash == content_hash(parse_json(raw.encode()))


CHILDREN = st.lists(st.sampled_from(["Codelist", "Dataflow", "Novelty", "Concept", "Ref"]), max_size=4)


@LAW
@given(st.lists(CHILDREN, max_size=3), CHILDREN, CHILDREN, st.integers(20, 300))
def test_every_child_of_ml_is_an_artefact_or_reported(containers, direct, beside, size):
    numbers = count()

    def written(name: str) -> str:
        return f'<str:{name} id="N{next(numbers)}" agencyID="X"><str:Any/></str:{name}>'

    inside = [[written(name) for name in names] for names in containers]
    bare, outside = [written(name) for name in direct], [written(name) for name in beside]
    whole = structures.ml("3.0", *(("Things", "".join(each)) for each in inside))
    whole = whole.replace("</mes:Structures>", f"{''.join(bare)}</mes:Structures>{''.join(outside)}")
    parts = split(Dripping(whole.encode(), size))
    assert [artefact.content.decode() for artefact in parts] == [*(each for some in inside for each in some), *bare]
    outside_texts = [whole.encode()[finding.offset :].decode() for finding in parts.findings]
    assert [rest.startswith(each) for rest, each in zip(outside_texts, outside, strict=True)] == [True] * len(outside)


MEMBERS = st.dictionaries(
    st.sampled_from(["codelists", "dataflows", "novelties", "odd"]),
    st.lists(st.dictionaries(st.sampled_from(["id", "name"]), TEXTS) | TEXTS | st.none(), max_size=3) | TEXTS,
)


@LAW
@given(MEMBERS, st.integers(20, 300))
def test_every_child_of_json_is_an_artefact_or_reported(data, size):
    message = structures.sdmx_json("2.0", data)
    parts = split(Dripping(message.encode(), size))
    kept = [json.loads(artefact.content) for artefact in parts]
    assert kept == [each for some in data.values() if isinstance(some, list) for each in some if isinstance(each, dict)]
    others = [each for some in data.values() if isinstance(some, list) for each in some if not isinstance(each, dict)]
    assert len(parts.findings) == len(others) + sum(not isinstance(some, list) for some in data.values())


@LAW
@given(TREES, WRITINGS)
def test_parts_that_are_put_together_again_are_what_they_were(trees, writing):
    message = writing.message(trees)
    found = list(split(BytesIO(message)))
    joined = b"".join(artefact.content for artefact in found)
    prefixes = ("mes", writing.prefix, "com")
    again = structures.ml("2.1", ("Codelists", joined.decode()), prefixes=prefixes).encode()
    assert [(one.content, one.content_hash) for one in split(BytesIO(again))] == [
        (one.content, one.content_hash) for one in found
    ]


WHOLE = [
    structures.ml("2.1", ("Codelists", structures.CODELIST_2_1), ("Dataflows", structures.DATAFLOW_2_1)).encode(),
    structures.ml("2.0", ("KeyFamilies", structures.KEY_FAMILY_2_0), ("Dataflows", structures.DATAFLOW_2_0)).encode(),
    structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON, structures.DATAFLOW_JSON]}).encode(),
    json.dumps({"Codelist": [structures.CODELIST_FUSION], "meta": {"id": "M"}}).encode("utf-16"),
]
DAMAGE = st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 30), st.binary(max_size=6)), min_size=1, max_size=4)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(WHOLE), DAMAGE, st.integers(20, 3000))
def test_a_damaged_message_is_split_or_refused_and_nothing_else(message, damage, size):
    for start, length, put in damage:
        message = message[:start] + put + message[start + length :]
    with suppress(StructureMessageError):
        for artefact in split(Dripping(message, size)):
            assert artefact.content in artefact.message()


def test_white_space_that_is_content_counts():
    def hash_of(inside: str) -> bytes:
        message = structures.ml("2.1", ("Codelists", f'<str:Codelist id="A" agencyID="X">{inside}</str:Codelist>'))
        return hashes(message.encode())[0]

    assert hash_of("<com:Name> </com:Name>") != hash_of("<com:Name/>")
    assert hash_of("<com:Name>a </com:Name>") != hash_of("<com:Name>a</com:Name>")
    html = '<div xmlns="http://www.w3.org/1999/xhtml"><b>a</b>{}<i>b</i></div>'
    assert hash_of(html.format(" ")) != hash_of(html.format(""))
    assert hash_of(f"{html} <com:Name/>") == hash_of(f"{html}<com:Name/>")


def test_a_prefix_in_a_value_that_is_a_name_represents_its_namespace():
    def hash_of(prefix: str, type_: str) -> bytes:
        inside = f'<com:Text xsi:type="{type_}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/>'
        message = structures.ml("2.1", ("Codelists", f'<str:Codelist id="A">{inside}</str:Codelist>'))
        return hashes(re.sub(r"\bcom\b", prefix, message).encode())[0]

    assert hash_of("com", "com:TextType") == hash_of("c", "c:TextType")
    assert hash_of("com", "com:TextType") != hash_of("com", "str:TextType")


def test_a_long_text_counts_as_one_wherever_pieces_of_it_end():
    text = "&amp;".join("word " * 5000 for _ in range(4)) + " " * 20_000
    message = structures.ml(
        "2.1", ("Codelists", f"<str:Codelist id='A'>{'<com:Name>' + text + '</com:Name>'}</str:Codelist>")
    )
    whole = hashes(message.encode())
    for size in (100, 8191, 8192, 70_001):
        assert [artefact.content_hash for artefact in split(Dripping(message.encode(), size))] == whole


def same_in_its_own_message(artefact: Artefact) -> None:
    [again] = split(BytesIO(artefact.message()))
    assert (again.content, again.content_hash, again.urn) == (artefact.content, artefact.content_hash, artefact.urn)
    assert again.references == artefact.references
    assert again.message() == artefact.message()


class Dripping:
    """A stream that gives a few bytes at a time, as a slow connection does."""

    def __init__(self, message: bytes, size: int) -> None:
        self._stream = BytesIO(message)
        self._size = size

    def read(self, size: int, /) -> bytes:
        return self._stream.read(min(size, self._size))
