"""Airflow tries again what may work later, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from airflow.sdk import ExceptionRetryPolicy, RetryAction  # noqa: E402

from contexture.errors import ConfigurationError, DefectError, RejectedError, RetriableError  # noqa: E402
from contexture.kafka import BrokersAwayError, FencedError  # noqa: E402
from contexture_airflow.dag_defaults import retry_policy  # noqa: E402


@pytest.mark.parametrize(
    ("kind", "action"),
    [
        (RetriableError, RetryAction.RETRY),
        (BrokersAwayError, RetryAction.RETRY),
        (ConfigurationError, RetryAction.FAIL),
        (FencedError, RetryAction.FAIL),
        (RejectedError, RetryAction.FAIL),
        (DefectError, RetryAction.FAIL),
    ],
)
def test_the_intent_decides(kind: type[RetriableError], action: RetryAction) -> None:
    # As the scheduler stores it and a worker gets it back.
    policy = ExceptionRetryPolicy.deserialize(retry_policy().serialize())
    assert policy.evaluate(kind("a", next_step="b"), 1, 3).action == action


def test_a_retry_waits() -> None:
    decision = retry_policy().evaluate(RetriableError("a", next_step="b"), 1, 3)
    assert decision.retry_delay == timedelta(seconds=30)


def test_errors_of_others_follow_the_task() -> None:
    assert retry_policy().evaluate(OSError("no route"), 1, 3).action == RetryAction.DEFAULT
