"""Converting structures into other formats, and listing what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.registry import STRUCTURE_OF_EXR
from builders.structures import CODELIST_JSON, DATAFLOW_2_1, sdmx_json
from builders.transcoding import FREQUENCIES, LOST, MAPPINGS, frequencies, message, only
from contexture.errors import ConfigurationError
from contexture.sources.sdmx import Artefact, Format
from contexture.sources.sdmx.formats import named_in
from contexture.sources.sdmx.transcoding import transcoder
from contexture.sources.sdmx.transcoding.transcoder import (
    TARGETS,
    NotTranscodableError,
    source_formats,
    target_format,
    transcode,
)
from contexture.sources.sdmx.validation import SchemaValidator

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
SEX_JSON = only(sdmx_json("2.0", {"codelists": [CODELIST_JSON]}).encode())


def converted(artefact: Artefact, target: Format) -> Artefact:
    return transcode(artefact, target, NOON).artefact


def members(artefact: Artefact) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(artefact.content)
    return found


@pytest.mark.parametrize("target", [each for each in TARGETS if each is not Format.SDMX_ML_2_1])
def test_a_structure_keeps_its_urn_and_lists_what_it_lost(target: Format) -> None:
    source = frequencies()

    found = transcode(source, target, NOON)

    assert found.artefact.urn == source.urn == "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:CL_FREQ(1.0)"
    assert (found.artefact.format, found.source) == (target, Format.SDMX_ML_2_1)
    assert str(found.losses) == LOST


def test_a_structure_that_loses_nothing_says_so() -> None:
    flow = only(message(("Dataflows", DATAFLOW_2_1)))

    found = transcode(flow, Format.SDMX_ML_3_0, NOON)

    assert not found.losses
    assert found.artefact.references == flow.references


@pytest.mark.parametrize("target", TARGETS)
def test_what_comes_out_is_valid_by_its_schema(target: Format) -> None:
    source = SEX_JSON if target is Format.SDMX_ML_2_1 else frequencies()

    assert SchemaValidator().marked(converted(source, target)).findings == ()


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_structure_gives_the_same_bytes(target: Format) -> None:
    source = SEX_JSON if target is Format.SDMX_ML_2_1 else frequencies()

    assert converted(source, target).message() == converted(source, target).message()


def test_texts_keep_the_language_that_they_are_in() -> None:
    in_ml, in_json = converted(frequencies(), Format.SDMX_ML_3_0), converted(frequencies(), Format.SDMX_JSON_2_0)

    assert '<com:Name xml:lang="fr">Fréquences</com:Name>'.encode() in in_ml.content
    assert b'<com:Name xml:lang="en">Annual</com:Name>' in in_ml.content
    assert members(in_json)["names"] == {"fr": "Fréquences"}
    assert [each["names"] for each in members(in_json)["codes"]] == [{"en": "Annual"}, {"en": "Monthly"}]


def test_references_in_json_are_urns() -> None:
    flow = converted(only(message(("Dataflows", DATAFLOW_2_1))), Format.SDMX_JSON_2_0)

    assert members(flow)["structure"] == ("urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=ECB:ECB_EXR1(2.0)")


def test_json_becomes_ml_with_the_languages_that_are_left() -> None:
    found = transcode(SEX_JSON, Format.SDMX_ML_3_0, NOON)

    assert str(found.losses) == "name[fr] 1, parent 1"
    assert b'<com:Name xml:lang="en">Sex</com:Name>' in found.artefact.content


def test_the_header_is_that_of_the_source() -> None:
    sent = message(("Codelists", FREQUENCIES)).replace(b"</mes:Header>", b'<mes:Sender id="ECB"/></mes:Header>')

    written = converted(only(sent), Format.SDMX_JSON_2_0).message()

    meta = orjson.loads(written)["meta"]
    assert {name: meta[name] for name in ("id", "test", "sender")} == {
        "id": "M1",
        "test": False,
        "sender": {"id": "ECB"},
    }


def test_a_header_that_says_nothing_has_the_time_of_reading() -> None:
    headless = orjson.dumps({"data": {"codelists": [CODELIST_JSON]}})

    written = converted(only(headless, Format.SDMX_JSON_2_0.media_type), Format.SDMX_ML_3_0).message()

    assert b"<mes:ID>UNKNOWN</mes:ID>" in written
    assert b"<mes:Prepared>2026-11-01T12:00:00Z</mes:Prepared>" in written


def test_a_constraint_has_the_name_of_its_format() -> None:
    constraint = only(
        message(
            (
                "Constraints",
                '<str:ContentConstraint id="CR" agencyID="X" version="1.0" type="Allowed"><com:Name>C</com:Name>'
                "</str:ContentConstraint>",
            )
        )
    )
    name = "urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=X:CR(1.0)"

    assert converted(constraint, Format.SDMX_ML_3_0).urn == name == named_in(str(constraint.urn), Format.SDMX_ML_3_0)
    assert named_in(name, Format.SDMX_ML_2_1) == constraint.urn


def test_an_extension_that_pysdmx_can_not_read_is_reported_as_lost() -> None:
    extended = (
        '<str:Codelist id="CL" agencyID="X" version="1.0"><com:Name xml:lang="en">C</com:Name>'
        '<str:Code id="A"><com:Name xml:lang="en">A</com:Name></str:Code>'
        "<str:CodelistExtension><str:Codelist>urn:sdmx:org.sdmx.infomodel.codelist.Codelist=X:CL_B(1.0)</str:Codelist>"
        "</str:CodelistExtension></str:Codelist>"
    )

    found = transcode(only(message(("Codelists", extended), version="3.0")), Format.SDMX_JSON_2_0, NOON)

    assert str(found.losses) == "reference 1"


@pytest.mark.parametrize("target", [Format.SDMX_ML_3_0, Format.SDMX_JSON_2_0])
def test_a_kind_that_pysdmx_drops_is_refused(target: Format) -> None:
    with pytest.raises(NotTranscodableError, match=r"StructureSet=X:MAPS\(1\.0\) (becomes 0|cannot be converted)"):
        transcode(only(message(("StructureSets", MAPPINGS))), target, NOON)


def test_a_kind_that_the_format_has_no_place_for_is_refused() -> None:
    values = only(
        message(
            ("ValueLists", '<str:ValueList id="VL" agencyID="X" version="1.0"><com:Name>V</com:Name></str:ValueList>'),
            version="3.0",
        )
    )

    with pytest.raises(NotTranscodableError, match=r"is a ValueList, which SDMX-ML 2\.1 cannot express"):
        transcode(values, Format.SDMX_ML_2_1, NOON)


def test_a_structure_that_is_too_large_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(NotTranscodableError, match="has more than 100 bytes, which is the limit for converting"):
        transcode(frequencies(), Format.SDMX_JSON_2_0, NOON, largest_bytes=100)


def test_a_reference_by_element_is_one_by_urn() -> None:
    structure = STRUCTURE_OF_EXR.replace("/>", "><com:Name>E</com:Name></str:DataStructure>")
    both = only(message(("DataStructures", structure)))

    assert str(transcode(both, Format.SDMX_ML_3_0, NOON).losses) == ""


def test_a_reader_that_is_not_installed_is_no_fault_of_the_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcoder, "READERS", {Format.SDMX_ML_2_1: "no_such_package.reader"})

    with pytest.raises(ConfigurationError, match="no_such_package is not installed"):
        transcode(frequencies(), Format.SDMX_JSON_2_0, NOON)


def test_every_target_has_sources_that_are_others() -> None:
    for target in TARGETS:
        assert target_format(target.media_type) is target
        assert target not in source_formats(target)
    assert target_format("application/vnd.fusion.json") is None
    assert source_formats(Format.SDMX_JSON_2_1)[0] is Format.SDMX_JSON_2_0


_LANGUAGES = st.sampled_from(["en", "fr", "de"])
_TEXTS = st.dictionaries(_LANGUAGES, st.text("abcé", min_size=1, max_size=5), min_size=1)


@settings(max_examples=30)
@given(st.dictionaries(st.from_regex(r"[A-Z]{1,4}", fullmatch=True), _TEXTS, min_size=1, max_size=4))
def test_each_text_is_kept_in_its_language_or_reported_as_lost(codes: Mapping[str, Mapping[str, str]]) -> None:
    names = {
        code: "".join(f'<com:Name xml:lang="{language}">{text}</com:Name>' for language, text in texts.items())
        for code, texts in codes.items()
    }
    items = "".join(f'<str:Code id="{code}">{written}</str:Code>' for code, written in names.items())
    whole = f'<str:Codelist id="CL" agencyID="X" version="1.0"><com:Name>C</com:Name>{items}</str:Codelist>'

    found = transcode(only(message(("Codelists", whole))), Format.SDMX_ML_3_0, NOON)

    given_texts = sum(len(texts) for texts in codes.values()) + 1
    kept = found.artefact.content.count(b"<com:Name ")
    assert kept + sum(found.losses.counts.values()) >= given_texts
    assert kept == len(codes) + 1
