"""Joining structure messages: one message with the own bytes of all, as its schema wants it."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

from builders import structures
from contexture.errors import ConfigurationError
from contexture.sources.sdmx import Artefact, StructureMessageError, split
from contexture.sources.sdmx.splitting.joining import MessageJoiner
from contexture.sources.sdmx.validation import SchemaValidator

CODELIST_A = '<str:Codelist id="A" agencyID="X"><com:Name xml:lang="en">A</com:Name></str:Codelist>'


def artefacts(*messages: str | bytes) -> list[Artefact]:
    encoded = (each if isinstance(each, bytes) else each.encode() for each in messages)
    return [artefact for message in encoded for artefact in split(BytesIO(message))]


def alone(*messages: str | bytes) -> list[Artefact]:
    """Each artefact as a run stores it: split again from a message of its own."""
    return [part for artefact in artefacts(*messages) for part in split(BytesIO(artefact.message()))]


def joined(*found: Artefact) -> bytes:
    joiner = MessageJoiner()
    for each in found:
        joiner.add(each)
    message = joiner.message()
    assert joiner.size >= len(message) - 2
    return message


def contents(message: bytes) -> list[tuple[str | None, bytes]]:
    return [(each.urn, each.content_hash) for each in split(BytesIO(message))]


def test_joining_what_was_split_gives_the_message_back():
    whole = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1), ("Codelists", structures.CODELIST_2_1))
    assert joined(*alone(whole)).decode() == whole


def test_containers_come_once_and_in_the_order_that_the_schema_wants():
    codelist = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1))
    dataflow = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1))
    other = structures.ml("2.1", ("Codelists", CODELIST_A))
    assert joined(*alone(codelist, dataflow, other)).decode() == structures.ml(
        "2.1", ("Dataflows", structures.DATAFLOW_2_1), ("Codelists", structures.CODELIST_2_1 + CODELIST_A)
    )


@pytest.mark.parametrize("prefixes", [("m", "s", "c"), ("message", "", "common"), ("str", "mes", "com")])
def test_artefacts_with_other_prefixes_mean_what_they_meant(prefixes: tuple[str, str, str]):
    str_, com = (f"{prefix}:" if prefix else "" for prefix in prefixes[1:])
    renamed = CODELIST_A.replace("com:", "\0").replace("str:", str_).replace("\0", com)
    first = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1))
    second = structures.ml("2.1", ("Codelists", renamed), prefixes=prefixes)
    third = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1))
    for order in ((first, second, third), (second, third, first)):
        found = alone(*order)
        assert sorted(contents(joined(*found)), key=repr) == sorted(
            ((each.urn, each.content_hash) for each in found), key=repr
        )


def test_a_message_has_the_header_of_the_first_one():
    first = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1), header="FIRST")
    second = structures.ml("2.1", ("Codelists", CODELIST_A), header="SECOND")
    message = joined(*alone(first, second)).decode()
    assert (message.count("FIRST"), message.count("SECOND"), message.count("Header>")) == (1, 0, 2)


def test_comments_go_with_their_structure():
    message = structures.ml("2.1", ("Codelists", f"<!-- mine -->{CODELIST_A}"))
    assert joined(*alone(message)).decode() == message


def test_messages_in_other_encodings_become_one_in_utf_8():
    latin = structures.ml(
        "2.1", ("Codelists", CODELIST_A.replace(">A<", ">é<")), prolog='<?xml version="1.0" encoding="ISO-8859-1"?>'
    )
    wide = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1), prolog="")
    found = alone(latin.encode("iso-8859-1"), wide.encode("utf-16"))
    message = joined(*found)
    assert message.startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
    assert "é" in message.decode()
    assert sorted(contents(message)) == sorted((each.urn, each.content_hash) for each in found)


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_sdmx_json_is_joined_member_by_member(version: str):
    whole = structures.sdmx_json(
        version, {"codelists": [structures.CODELIST_JSON], "dataflows": [structures.DATAFLOW_JSON]}
    )
    other = structures.sdmx_json(version, {"codelists": [{**structures.CODELIST_JSON, "id": "CL_B"}]}, identifier="M2")
    assert json.loads(joined(*alone(whole, other))) == {
        "meta": structures.meta(version),
        "data": {
            "codelists": [structures.CODELIST_JSON, {**structures.CODELIST_JSON, "id": "CL_B"}],
            "dataflows": [structures.DATAFLOW_JSON],
        },
    }


def test_fusion_json_is_joined_by_kind():
    first = json.dumps({"meta": {"x": 1}, "Codelist": [structures.CODELIST_FUSION]})
    second = json.dumps({"Codelist": [{**structures.CODELIST_FUSION, "id": "CL_B"}]})
    assert json.loads(joined(*alone(first, second))) == {
        "meta": {"x": 1},
        "Codelist": [structures.CODELIST_FUSION, {**structures.CODELIST_FUSION, "id": "CL_B"}],
    }


def test_the_message_is_as_valid_as_its_parts():
    codelist = structures.ml("2.1", ("Codelists", CODELIST_A))
    dataflow = structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1))
    whole = joined(*alone(codelist, dataflow))
    [first, *_] = artefacts(whole)
    assert SchemaValidator(with_header=False).marked(first).findings == ()
    assert [each.urn for each in artefacts(whole)] == [each.urn for each in alone(dataflow, codelist)]


def test_two_formats_are_refused():
    with pytest.raises(ConfigurationError, match=r"two formats, SDMX-ML 2.1 and SDMX-ML 3.0") as caught:
        joined(
            *alone(
                structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)),
                structures.ml("3.0", ("Dataflows", structures.DATAFLOW_3)),
            )
        )
    assert "message.bundle: artefact" in caught.value.next_step


def test_nothing_is_no_message():
    with pytest.raises(StructureMessageError, match="without structures"):
        joined()
