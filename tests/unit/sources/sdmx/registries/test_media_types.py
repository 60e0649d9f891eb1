"""How formats are requested for (reference, 2.1), and whether the answer is one."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from builders import structures
from builders.registries import EDI, FUSION_JSON, JSON_2_0, ML_2_1
from contexture.sources.sdmx.formats import XLSX, accept_values, is_cut_off, other_format, splittable

ML = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)).encode()
JSON = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]}).encode()
INTERCHANGE = b"UNA:+.? '\r\nUNB+UNOC:3+5B0+4D0+060602:1605+IREF'\r\nUNZ+1+IREF'\r\n"


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        (ML_2_1, (ML_2_1,)),
        ("application/vnd.sdmx.structure+xml; version=1.0", ("application/vnd.sdmx.structure+xml;version=1.0",)),
        (
            "application/vnd.sdmx.structure+xml;version=3.0.0",
            (
                "application/vnd.sdmx.structure+xml;version=3.0.0",
                "application/vnd.sdmx.structure+xml;version=3.0",
            ),
        ),
        # The manual's two pages.
        (EDI, (EDI, "application/vnd.sdmx.structure+edi")),
        (
            "application/vnd.sdmx.json",
            ("application/vnd.sdmx.json", "application/vnd.sdmx.structure+json;version=1.0.0"),
        ),
        (XLSX, (XLSX,)),
        (FUSION_JSON, (FUSION_JSON,)),
    ],
)
def test_a_format_is_asked_for_by_all_its_names(media_type: str, expected: tuple[str, ...]):
    assert accept_values(media_type) == expected


@pytest.mark.parametrize(("media_type", "expected"), [(ML_2_1, True), (FUSION_JSON, True), (EDI, False), (XLSX, False)])
def test_messages_of_some_formats_can_not_be_split(media_type: str, expected: bool):
    assert splittable(media_type) is expected


@pytest.mark.parametrize(
    ("requested", "body", "received", "expected"),
    [
        (ML_2_1, ML, "application/xml", None),
        (ML_2_1, b"\xef\xbb\xbf" + ML, "", None),
        (ML_2_1, ML.decode().replace("UTF-8", "UTF-16").encode("utf-16"), "application/xml", None),
        ("application/vnd.sdmx.structure+xml;version=3.0.0", ML, "application/xml", "SDMX-ML 2.1"),
        (ML_2_1, JSON, JSON_2_0, JSON_2_0),
        (JSON_2_0, JSON, "application/json", None),
        (JSON_2_0, ML, "application/xml", "application/xml"),
        (JSON_2_0, JSON, FUSION_JSON, "Fusion-JSON"),
        (FUSION_JSON, b'{"meta":{}}', FUSION_JSON, None),
        (FUSION_JSON, JSON, JSON_2_0, "SDMX-JSON 2.0"),
        (EDI, INTERCHANGE, "", None),
        (EDI, ML, "application/xml", "application/xml"),
        ("application/x-of-tomorrow", ML, "", None),
    ],
)
def test_an_answer_in_another_format_is_noticed(
    tmp_path: Path, requested: str, body: bytes, received: str, expected: str | None
):
    (tmp_path / "answer").write_bytes(body)
    assert other_format(tmp_path / "answer", requested, received) == expected


def test_what_can_not_be_split_is_known_to_be_whole_by_its_end(tmp_path: Path):
    path = tmp_path / "answer"
    path.write_bytes(INTERCHANGE)
    assert not is_cut_off(path, EDI)
    path.write_bytes(INTERCHANGE[:-14])
    assert is_cut_off(path, EDI)
    with zipfile.ZipFile(path, "w") as workbook:
        workbook.writestr("xl/workbook.xml", "<workbook/>")
    assert not is_cut_off(path, XLSX)
    path.write_bytes(path.read_bytes()[:-30])
    assert is_cut_off(path, XLSX)
    path.write_bytes(ML[:100])
    assert not is_cut_off(path, ML_2_1)  # splitting sees to it
