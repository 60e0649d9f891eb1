"""Addresses of structure queries, by the REST specification and section 2.1 of the reference."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from contexture.sources.sdmx.registry import StructureQuery
from contexture.sources.sdmx.registry.structures import StructurePaths

V1 = StructurePaths("/ws/public/sdmxapi/rest", "v1")
V2 = StructurePaths("/sdmx/v2", "v2")


@pytest.mark.parametrize(
    ("query", "version_1", "version_2"),
    [
        (StructureQuery(), "/structure/all/all/all", "/structure/*/*/*/*"),
        (StructureQuery("Codelist", "ECB"), "/codelist/ECB/all/all", "/structure/codelist/ECB/*/*"),
        (
            StructureQuery("Dataflow", "ECB.STA", "EXR", "1.0"),
            "/dataflow/ECB.STA/EXR/1.0",
            "/structure/dataflow/ECB.STA/EXR/1.0",
        ),
        (
            StructureQuery("ContentConstraint", "ECB", "C", "1.0"),
            "/contentconstraint/ECB/C/1.0",
            "/structure/dataconstraint/ECB/C/1.0",
        ),
        (
            StructureQuery("DataConstraint", "ECB", "C", "1.0"),
            "/contentconstraint/ECB/C/1.0",
            "/structure/dataconstraint/ECB/C/1.0",
        ),
        (
            StructureQuery("ReportingTemplate", "BIS"),
            "/reportingtemplate/BIS/all/all",
            "/structure/reportingtemplate/BIS/*/*",
        ),
        (
            StructureQuery("ValueList", "BIS", "V", "2.0.1"),
            "/valuelist/BIS/V/2.0.1",
            "/structure/valuelist/BIS/V/2.0.1",
        ),
    ],
)
def test_every_part_is_said(query: StructureQuery, version_1: str, version_2: str):
    """By default a registry answers the latest version alone."""
    assert V1.of(query) == f"/ws/public/sdmxapi/rest{version_1}"
    assert V2.of(query) == f"/sdmx/v2{version_2}"


def test_stubs_are_asked_for_by_detail():
    assert V1.of(StructureQuery(), stubs=True) == "/ws/public/sdmxapi/rest/structure/all/all/all?detail=allstubs"
    assert V2.of(StructureQuery(), stubs=True) == "/sdmx/v2/structure/*/*/*/*?detail=allstubs"


def test_a_moment_keeps_its_milliseconds_and_is_sent_in_utc():
    """Within one second a registry may do several things."""
    moment = datetime(2026, 11, 1, 13, 0, 0, 123456, tzinfo=timezone(timedelta(hours=1)))
    query = StructureQuery("Codelist", "X", "CL_A", "1.0")
    assert V2.of(query, as_of=moment) == "/sdmx/v2/structure/codelist/X/CL_A/1.0?asOf=2026-11-01T12:00:00.123Z"
    both = V2.of(query, stubs=True, as_of=datetime(2026, 11, 1, tzinfo=UTC))
    assert both.endswith("?detail=allstubs&asOf=2026-11-01T00:00:00.000Z")


def test_what_came_from_a_urn_can_not_lead_elsewhere():
    assert V2.of(StructureQuery("Codelist", "X", "../../secret?a#b", "1.0")) == (
        "/sdmx/v2/structure/codelist/X/..%2F..%2Fsecret%3Fa%23b/1.0"
    )
