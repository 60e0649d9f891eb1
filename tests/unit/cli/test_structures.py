"""`contexture structures split`: what a message holds, in lines, as JSON, and as files."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from builders import structures

CL_SEX = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=SDMX:CL_SEX(2.1)"
EXR = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=ECB:EXR(1.0)"
MESSAGE = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1), ("Dataflows", structures.DATAFLOW_2_1))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "message.xml"
    path.write_text(MESSAGE)
    return path


def test_each_artefact_is_a_line_and_the_last_line_sums_up(contexture, file):
    done = contexture("structures", "split", str(file))
    lines = [line.split() for line in done.out.splitlines()]
    sizes = len(structures.CODELIST_2_1), len(structures.DATAFLOW_2_1)
    assert done.code == 0
    assert [(line[0], line[2], line[3]) for line in lines[1:3]] == [
        (str(sizes[0]), "0", CL_SEX),
        (str(sizes[1]), "1", EXR),
    ]
    assert done.out.splitlines()[3] == f"2 artefacts with {sum(sizes)} bytes in SDMX-ML 2.1"


def test_scripts_get_all_but_the_content(contexture, file):
    document = json.loads(contexture("structures", "split", str(file), "--json").out)
    assert document["format"] == "SDMX-ML 2.1"
    assert document["error"] is None
    assert [artefact["urn"] for artefact in document["artefacts"]] == [CL_SEX, EXR]
    assert document["artefacts"][1]["references"] == [
        "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=ECB:ECB_EXR1(2.0)"
    ]


def test_each_artefact_is_written_in_a_message_of_its_own(contexture, file, tmp_path):
    folder = tmp_path / "parts"
    assert contexture("structures", "split", str(file), "--to", str(folder)).code == 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "Codelist-SDMX-CL_SEX-2.1.xml": structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)),
        "Dataflow-ECB-EXR-1.0.xml": structures.ml("2.1", ("Dataflows", structures.DATAFLOW_2_1)),
    }


def test_no_name_in_a_message_leads_out_of_the_folder_or_over_another_file(contexture, tmp_path):
    names = ("../../etc/passwd", "../../etc/passwd", "a:b", "A_B", "a_b")
    codelists = "".join(f'<str:Codelist id="{name}" agencyID="/x"/>' for name in names)
    message = tmp_path / "message.xml"
    message.write_text(structures.ml("2.1", ("Codelists", codelists)))
    contexture("structures", "split", str(message), "--to", str(tmp_path / "parts"))
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == [
        "Codelist-_x-.._.._etc_passwd-1.0-2.xml",
        "Codelist-_x-.._.._etc_passwd-1.0.xml",
        "Codelist-_x-A_B-1.0-2.xml",
        "Codelist-_x-a_b-1.0-3.xml",
        "Codelist-_x-a_b-1.0.xml",
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"message.xml", "parts"}


def test_what_is_odd_is_reported_and_the_data_cannot_speak_to_the_terminal(contexture, tmp_path):
    message = tmp_path / "message.xml"
    odd = '<str:Novelty id="N\u009b2J" agencyID="X"/>'
    message.write_text(
        structures.ml("3.1", ("Novelties", odd)).replace("</mes:Structures>", "</mes:Structures><mes:Odd/>")
    )
    done = contexture("structures", "split", str(message))
    assert done.code == 0
    assert "Novelty N\\x9b2J, which has no URN" in done.out
    assert "unknown-kind: Novelty N\\x9b2J is of an unknown kind" in done.out
    assert "outside: Odd is not a structure, and in no artefact (byte " in done.out
    assert "\u009b" not in done.out


def test_a_broken_message_shows_what_was_whole_and_fails(contexture, tmp_path):
    message = tmp_path / "message.xml"
    message.write_text(MESSAGE[:-40])
    done = contexture("structures", "split", str(message))
    assert done.code == 1
    assert CL_SEX in done.out
    assert "error: the XML is broken" in done.err
    document = json.loads(contexture("structures", "split", str(message), "--json").out)
    assert document["error"]["intent"] == "data rejected"


def test_a_message_may_come_from_standard_input(contexture, monkeypatch):
    message = structures.sdmx_json("2.0", {"codelists": [structures.CODELIST_JSON]}).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(message)))
    done = contexture("structures", "split", "-")
    assert done.code == 0
    assert done.out.splitlines()[-1].endswith("in SDMX-JSON 2.0")


def test_a_file_that_is_not_there_is_named(contexture, tmp_path):
    done = contexture("structures", "split", str(tmp_path / "none.xml"))
    assert done.code == 2
    assert "none.xml: No such file or directory" in done.err


def test_validity_is_shown_on_request_and_changes_nothing(contexture, file):
    plain, checked = (
        contexture("structures", "split", str(file)),
        contexture("structures", "split", str(file), "--validate"),
    )
    assert checked.code == 0
    assert "invalid: line 2: Element 'Header': Missing child element(s)" in checked.out
    assert [line for line in checked.out.splitlines() if "invalid:" not in line] == plain.out.splitlines()
