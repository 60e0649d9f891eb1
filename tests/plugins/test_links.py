"""The buttons on tasks lead to the Contexture page, or are not there."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from contexture_airflow.operators.common import ReportLink, TransactionsLink, VerificationLink  # noqa: E402
from contexture_airflow.operators.publish import PublishOutboxOperator  # noqa: E402
from contexture_airflow.operators.quality_gate import QualityGateOperator  # noqa: E402
from contexture_airflow.operators.verify_replica import VerifyReplicaOperator  # noqa: E402

STAGED = {
    "publication": "cars",
    "run": "run1",
    "outbox": "outbox1",
    "sequence": 1,
    "records": 1,
    "shards": [0],
    "report": "/home/contexture/cars/report/outbox1/index.html",
}


def report_link(staged: object) -> str:
    task = QualityGateOperator(task_id="quality_gate", staged=staged)
    return ReportLink().get_link(task, ti_key=None)  # type: ignore[arg-type]


def verification_link(report: str | None) -> str:
    task = VerifyReplicaOperator(task_id="verify", publication="cars")
    task.report_path = report
    return VerificationLink().get_link(task, ti_key=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("base_url", "prefix"),
    [
        ("http://localhost:8080", ""),
        ("http://localhost:8080/", ""),
        ("https://city.example/tools/airflow/", "/tools/airflow"),
    ],
)
def test_buttons_lead_to_the_page_below_the_path_of_airflow(
    monkeypatch: pytest.MonkeyPatch, base_url: str, prefix: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    assert report_link(STAGED) == f"{prefix}/contexture/publications/cars/reports/outbox1/index.html"
    verification = "s3://bucket/contexture/cars/verification/20260301T120000000000Z/index.html"
    assert verification_link(verification) == (
        f"{prefix}/contexture/publications/cars/verifications/20260301T120000000000Z/index.html"
    )


@pytest.mark.parametrize("staged", [None, "{{ ti }}", {**STAGED, "report": None}])
def test_a_run_without_report_has_no_button(staged: Any) -> None:
    """Airflow shows no button for an empty address."""
    assert report_link(staged) == ""


def test_a_verification_that_has_not_read_the_topics_has_no_button() -> None:
    assert verification_link(None) == ""


@pytest.mark.parametrize(
    ("staged", "shard", "address"),
    [
        (STAGED, 3, "/contexture/publications/cars/transactions?outbox=outbox1&shard=3"),
        (STAGED, "{{ shard }}", "/contexture/publications/cars/transactions?outbox=outbox1"),
        (None, 0, ""),
    ],
)
def test_the_button_of_a_shard_leads_to_its_transactions(
    monkeypatch: pytest.MonkeyPatch, staged: Any, shard: Any, address: str
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://localhost:8080")
    task = PublishOutboxOperator(task_id="publish", staged=staged, shard=shard)
    assert TransactionsLink().get_link(task, ti_key=None) == address  # type: ignore[arg-type]
