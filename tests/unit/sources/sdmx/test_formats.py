"""Every format is known by its bytes."""

from __future__ import annotations

import codecs
from io import BytesIO

import pytest

from builders import structures
from contexture.sources.sdmx import Format, StructureMessageError, UnsplittableFormatError, split

CL_SEX = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1)"


def urns(message: bytes, media_type: str | None = None) -> tuple[Format | None, list[str | None]]:
    parts = split(BytesIO(message), media_type)
    return [artefact.urn for artefact in parts], parts.format


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1"])
def test_sdmx_ml_since_2_1(version):
    message = structures.ml(version, ("Codelists", structures.CODELIST_2_1))
    assert urns(message.encode()) == ([CL_SEX], Format(f"SDMX-ML {version}"))


def test_sdmx_ml_2_0():
    containers = (("CodeLists", structures.CODELIST_2_0), ("KeyFamilies", structures.KEY_FAMILY_2_0))
    assert urns(structures.ml("2.0", *containers).encode()) == (
        [
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=BIS:CL_FREQ(1.0)",
            "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=BIS:DEBT(1.0)",
        ],
        Format.SDMX_ML_2_0,
    )


def test_sdmx_ml_1_0():
    containers = (("CodeLists", structures.CODELIST_1_0), ("KeyFamilies", structures.KEY_FAMILY_1_0))
    assert urns(structures.ml("1.0", *containers).encode()) == (
        [
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=BIS:CL_FREQ(1.0)",
            "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=BIS:DEBT(1.0)",
        ],
        Format.SDMX_ML_1_0,
    )


@pytest.mark.parametrize("version", ["1.0", "2.0", "2.1"])
def test_sdmx_json_by_the_schema_it_names(version):
    message = structures.sdmx_json(version, {"codelists": [structures.CODELIST_JSON]})
    assert urns(message.encode()) == ([CL_SEX], Format(f"SDMX-JSON {version}"))


def test_sdmx_json_by_its_media_type():
    message = b'{"data": {"dataflows": []}}'
    media_type = "application/vnd.sdmx.structure+json;version=1.0"
    assert urns(message, media_type) == ([], Format.SDMX_JSON_1_0)
    assert urns(message, "application/vnd.sdmx.json") == ([], Format.SDMX_JSON_1_0)


def test_sdmx_json_that_names_no_version_is_said_to_be_taken_for_2_0():
    parts = split(BytesIO(b'{"data": {"dataflows": []}}'))
    assert list(parts) == []
    assert parts.format is Format.SDMX_JSON_2_0
    assert [finding.code for finding in parts.findings] == ["notice"]


def test_fusion_json():
    message = structures.json.dumps({"Codelist": [structures.CODELIST_FUSION]})
    assert urns(message.encode()) == ([CL_SEX], Format.FUSION_JSON)


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", "UTF-8"),
        ("utf-8-sig", "UTF-8"),
        ("utf-16", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("latin-1", "ISO-8859-1"),
        ("cp1252", "windows-1252"),
        ("shift_jis", "Shift_JIS"),
        ("cp037", "IBM037"),
    ],
)
def test_sdmx_ml_in_any_encoding(encoding, declared):
    name = "日本" if encoding == "shift_jis" else "Zürich"
    prolog = f'<?xml version="1.0" encoding="{declared}"?>\n'
    codelist = structures.CODELIST_2_1.replace("Sexe", name)
    text = structures.ml("2.1", ("Codelists", codelist), prolog=prolog)
    [artefact] = split(BytesIO(text.encode(encoding)))
    [plain] = split(BytesIO(structures.ml("2.1", ("Codelists", codelist)).encode()))
    codec = "utf-16-le" if encoding == "utf-16" else "utf-32-le" if encoding == "utf-32" else encoding
    assert artefact.content == codelist.encode(codec.removesuffix("-sig"))
    assert artefact.message() == text.encode(encoding)
    assert (artefact.urn, artefact.content_hash) == (CL_SEX, plain.content_hash)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_json_in_any_encoding(encoding):
    text = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]})
    [artefact] = split(BytesIO(text.encode(encoding)))
    [plain] = split(BytesIO(text.encode()))
    assert (artefact.urn, artefact.content_hash) == (CL_SEX, plain.content_hash)
    [again] = split(BytesIO(artefact.message()))
    assert again.content == artefact.content


def test_a_declaration_that_its_own_letters_refute_is_not_believed():
    text = structures.ml(
        "2.1", ("Codelists", structures.CODELIST_2_1), prolog='<?xml version="1.0" encoding="UTF-16"?>'
    )
    assert urns(text.encode()) == ([CL_SEX], Format.SDMX_ML_2_1)


@pytest.mark.parametrize("prolog", ["", "\n  ", "<!-- " + "very long " * 1000 + "-->", "<?xml-stylesheet href='x'?>"])
def test_nothing_of_a_prolog_is_needed(prolog):
    text = structures.ml("3.0", ("Codelists", structures.CODELIST_2_1), prolog=prolog, prefixes=("", "str", "com"))
    [artefact] = split(BytesIO(text.encode()))
    assert artefact.urn == CL_SEX
    assert artefact.message() == text.encode()


@pytest.mark.parametrize("message", [b"UNA:+.? '\nUNB+UNOC:3+5B0'", b"UNB+UNOC:3+5B0+4F0'", b"PK\x03\x04\x14\x00"])
def test_formats_that_cannot_be_split_are_named_with_the_way_out(message):
    with pytest.raises(UnsplittableFormatError, match="one URN at a time"):
        split(BytesIO(message))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"", "empty"),
        (b"  \n ", "empty"),
        (b"Service unavailable", "neither XML nor a JSON object"),
        (b"[]", "neither XML nor a JSON object"),
        (b"\x1f\x8b\x08\x00", "compressed with gzip"),
        (b"<!DOCTYPE html><html></html>", "DOCTYPE"),
        (b"<html><body>Not found</body></html>", "root element html"),
        (b'{"status": 404, "message": "not found"}', "neither structures nor a header"),
        (b'{"errors": [{"code": 404}]}', "neither structures nor a header"),
        (b'{"details": [{"code": 404}]}', "no member that is known"),
        (b'{"meta": {}, "data": {"dataSets": []}}', "a data message"),
        (b'{"data": [1]}', "data that are not an object"),
        (b'{"meta": {}, "data": {"metadataSets": [{"id": "A"}]}}', "a metadata message"),
        (b'{"meta": {}, "metadataSets": [{"id": "A"}]}', "a metadata message"),
        (b'{"meta": {}, "MetadataSet": [{"id": "A"}]}', "a metadata message"),
        (b'{"meta": {}, "dataSets": [{}], "structure": {}}', "a data message"),
        (
            b'{"meta": {"schema": "https://json.sdmx.org/2.0.0/sdmx-json-metadata-schema.json"}, "data": {}}',
            "a metadata message",
        ),
        (
            b'{"meta": {"schema": "https://json.sdmx.org/2.0.0/sdmx-json-data-schema.json"}, "data": {}}',
            "a data message",
        ),
    ],
)
def test_anything_else_is_refused_with_a_reason(message, said):
    with pytest.raises(StructureMessageError, match=said):
        list(split(BytesIO(message)))


@pytest.mark.parametrize(
    "root",
    ["GenericData", "Error", "StructureSpecificData", "GenericMetadata", "StructureSpecificMetadata", "Metadata"],
)
def test_other_messages_of_sdmx_ml_are_named(root):
    message = f"<mes:{root} {structures.namespaces('2.1')}/>"
    with pytest.raises(StructureMessageError, match=f"a {root} of SDMX-ML 2.1, and holds no structures"):
        list(split(BytesIO(message.encode())))


def test_bytes_that_are_not_of_the_declared_encoding_are_refused():
    message = b'<?xml version="1.0" encoding="windows-1252"?><a>' + b"\x81</a>"
    with pytest.raises(StructureMessageError, match="is not written in cp1252"):
        list(split(BytesIO(message)))


def test_an_unknown_encoding_is_refused():
    with pytest.raises(StructureMessageError, match="the encoding x-nonsense is unknown"):
        split(BytesIO(b'<?xml version="1.0" encoding="x-nonsense"?><a/>'))


def test_a_byte_order_mark_is_kept():
    text = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1))
    [artefact] = split(BytesIO(codecs.BOM_UTF8 + text.encode()))
    assert artefact.message() == codecs.BOM_UTF8 + text.encode()


@pytest.mark.parametrize("version", ["2.0", "2.1", "3.0"])
@pytest.mark.parametrize("name", ["MetadataSet", "DataSet"])
def test_data_and_metadata_in_the_place_of_structures_are_named(version, name):
    inside = f'<str:{name} id="A" agencyID="X"/>'
    if version != "2.0":
        inside = f"<mes:Structures>{inside}</mes:Structures>"
    message = f"<mes:Structure {structures.namespaces(version)}>{inside}</mes:Structure>"
    with pytest.raises(StructureMessageError, match=f"contains a {name}, which is not a structure"):
        list(split(BytesIO(message.encode())))
