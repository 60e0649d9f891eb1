"""What real structures lose when they are converted: the first of each kind in a message."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from contexture.sources.sdmx import Artefact, Format, split
from contexture.sources.sdmx.transcoding.transcoder import NotTranscodableError, transcode
from samples_location import samples_or_skip

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
LARGEST = 100_000
REFUSED = "refused"


def lost(artefact: Artefact, target: Format) -> str:
    try:
        return str(transcode(artefact, target, NOON).losses)
    except NotTranscodableError:
        return REFUSED


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        (
            "ml21/ECB_EXR1_structure-full.xml",
            Format.SDMX_JSON_2_0,
            {
                "AgencyScheme": "name[en] 1",
                "Dataflow": "",
                "Categorisation": "",
                "Codelist": "",
                "ConceptScheme": "",
                "DataStructure": "",
                "ContentConstraint": "include 1",
            },
        ),
        (
            "ml21/UNICEF_GLOBAL_DATAFLOW.xml",
            Format.SDMX_JSON_2_0,
            {
                "AgencyScheme": "name[en] 1",
                "DataProviderScheme": "",
                "Dataflow": "isFinal 1",
                "Codelist": "isFinal 1",
                "ConceptScheme": "reference 25",
                "DataStructure": "",
                "ContentConstraint": "",
                "ProvisionAgreement": "",
            },
        ),
        ("ml21/ECB_structureset.xml", Format.SDMX_ML_3_0, {"StructureSet": REFUSED}),
        (
            "json20/FMR_CL_FREQ.json",
            Format.SDMX_ML_3_0,
            {"Codelist": "annotation text[en] 3, annotation title 3, annotation type 3"},
        ),
    ],
)
def test_what_a_structure_loses_is_reported(name: str, target: Format, expected: Mapping[str, str]) -> None:
    found: dict[str, str] = {}
    with (samples_or_skip() / "sdmx" / name).open("rb") as stream:
        for artefact in split(stream):
            if artefact.kind not in found and artefact.size <= LARGEST:
                found[artefact.kind] = lost(artefact, target)

    assert found == expected
