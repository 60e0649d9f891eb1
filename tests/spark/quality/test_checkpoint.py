"""Every expectation holds for a good run and fails for an entity or a count that breaks it, and for nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from contexture.publications import Publication
from contexture.publications.quality import Expectation
from contexture.storage.manifests import QualityVerdict
from contexture.storage.quarantine import RuleSample, RuleSamples
from spark_jobs.quality.summary import RunSummary

pytestmark = pytest.mark.spark

EXPECTED = [
    ("volume", "critical", "1 in the source"),
    ("quarantined-share", "critical", "1 of 1 entities (100.00%)"),
    ("count-zero", "critical", "1 found"),
    ("freshness", "warning", "3,601 s old"),
    ("unique-identity", "critical", "2 of 12 rows break it"),
    ("id-present", "critical", "1 of 12 rows break it"),
    ("type-present", "critical", "1 of 12 rows break it"),
    ("known-type", "critical", "1 of 12 rows break it"),
    ("service-path", "critical", "1 of 12 rows break it"),
    ("topic-name", "critical", "3 of 12 rows break it"),
    ("not-in-the-future", "warning", "1 of 12 rows break it"),
    ("required-attribute:brand", "critical", "1 of 12 rows break it"),
    ("attribute-type:speed", "warning", "1 of 12 rows break it"),
    ("range:speed", "warning", "1 of 12 rows break it"),
]

LOWEST_SPEED = Expectation(name="ExpectColumnMinToBeBetween", kwargs={"column": "value_speed", "min_value": 1})


@pytest.fixture(scope="module")
def good(judged: Any, publication: Publication, car: Callable[..., dict[str, Any]], good_run: RunSummary) -> Any:
    return judged(publication, [car("car1"), car("car2"), car("car3", modified_at=None, value_speed=None)], good_run)


@pytest.fixture(scope="module")
def bad(judged: Any, publication: Publication, car: Callable[..., dict[str, Any]], good_run: RunSummary) -> Any:
    late = good_run.reference_time + timedelta(seconds=61)
    rows = [
        car("car1"),
        car("car2", identity=car("car1")["identity"]),
        car("car3", id=None),
        car("car4", type=None),
        car("car5", type="<script>alert(1)</script>", identity='["","/","<script>alert(2)</script>","car"]'),
        car("car6", service_path="/4-wheels"),
        car("car7", topic=".."),
        car("car8", topic="a b"),
        car("car9", topic="a" * 250),
        car("car10", modified_at=late, type_brand=None),
        car("car11", type_speed="Text", value_speed=None),
        car("car12", value_speed=300.5),
    ]
    spoiled = replace(
        good_run,
        read=1,
        quarantined=1,
        in_source=1,
        newest_modified_at=good_run.reference_time - timedelta(seconds=3601),
        quarantined_by_rule={"id-syntax": 1},
        warnings_by_rule={"stale": 4},
        of_snapshot={"count-zero": 1},
        broken={"id-syntax": (RuleSample(identity="/4wheels car13 car", message="a space in it"),)},
    )
    return judged(publication, rows, spoiled)


@pytest.mark.parametrize("name", [name for name, _, _ in EXPECTED])
def test_an_expectation_holds_for_a_good_run(good: Any, name: str) -> None:
    assert good[name].success
    assert good[name].raised is None


@pytest.mark.parametrize(("name", "severity", "observed"), EXPECTED)
def test_an_expectation_fails_for_what_breaks_it(bad: Any, name: str, severity: str, observed: str) -> None:
    result = bad[name]
    assert (result.success, result.severity, result.observed, result.raised) == (False, severity, observed, None)


def test_the_verdict_has_every_expectation_once_in_the_suite_s_order(good: Any, bad: Any) -> None:
    names = [name for name, _, _ in EXPECTED]
    assert [result.name for result in good.verdict.results] == names
    assert [result.name for result in bad.verdict.results] == names


def test_a_good_run_is_approved_and_a_bad_one_is_not(good: Any, bad: Any) -> None:
    assert good.verdict.approved
    assert not bad.verdict.approved


def test_the_written_verdict_is_the_one_returned(bad: Any) -> None:
    assert QualityVerdict.model_validate_json((bad.folder / "verdict.json").read_bytes()) == bad.verdict
    assert bad.verdict.outbox == "000000000007-abc"


def test_the_raw_results_of_great_expectations_are_kept(bad: Any) -> None:
    documents = json.loads((bad.folder / "gx_result.json").read_bytes())
    assert len(documents) == len(EXPECTED)
    assert {document["success"] for document in documents} == {False}


def test_data_docs_stand_beside_the_page(bad: Any) -> None:
    docs = bad.folder / "data_docs"
    assert (docs / "index.html").is_file()
    assert len(list((docs / "validations").rglob("*.html"))) == 2
    linked = re.findall(r'href="([^"]+)"', (docs / "index.html").read_text())
    assert len(linked) == 5
    assert [link for link in linked if not (docs / link).is_file()] == []


def test_no_document_names_another_host_or_holds_a_script(bad: Any) -> None:
    pages = [path.read_text() for path in bad.folder.rglob("*.html")]
    assert len(pages) == 6
    assert [page for page in pages if re.search(r"https?://|src=|<script|<link|url\(|@import", page)] == []
    assert {path.suffix for path in bad.folder.rglob("*") if path.is_file()} == {".html", ".json"}


def test_a_few_of_what_broke_rules_and_expectations_are_kept_for_later_reports(bad: Any) -> None:
    kept = RuleSamples.model_validate_json((bad.folder / "samples.json").read_bytes())
    assert kept.rules == {"id-syntax": (RuleSample(identity="/4wheels car13 car", message="a space in it"),)}
    assert '["","/","<script>alert(2)</script>","car"]' in kept.expectations["known-type"][0]


def test_no_document_holds_markup_that_came_with_an_entity(bad: Any) -> None:
    pages = [path.read_text() for path in bad.folder.rglob("*.html")]
    assert [page for page in pages if "<script>alert" in page] == []
    assert "&lt;script&gt;alert(2)&lt;/script&gt;" in bad.page


def test_a_run_that_found_no_change_is_approved(judged: Any, publication: Publication, good_run: RunSummary) -> None:
    quality = publication.quality.model_copy(update={"expectations": (LOWEST_SPEED,)})
    quiet = publication.model_copy(update={"quality": quality})
    quiet_run = judged(quiet, [], replace(good_run, read=0, accepted=0, newest_modified_at=None))
    assert quiet_run.verdict.failures == ()
    assert quiet_run["own-1:ExpectColumnMinToBeBetween"].observed == "no rows"
