"""What Airflow does about an error, decided by the error's intent and nowhere else."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule

RETRIES = 3
RETRY_DELAY = timedelta(seconds=30)

_NEEDS_A_PERSON = ["ConfigurationError", "RejectedError", "DefectError"]


def retry_policy() -> ExceptionRetryPolicy:
    """Tries again what may work later, fails at once what needs a person; errors of others go by `retries` alone."""
    return ExceptionRetryPolicy(
        rules=[
            RetryRule(
                "contexture.errors.RetriableError",
                action=RetryAction.RETRY,
                retry_delay=RETRY_DELAY,
                reason="the outside world was not ready",
            ),
            RetryRule(
                [f"contexture.errors.{name}" for name in _NEEDS_A_PERSON],
                action=RetryAction.FAIL,
                reason="trying again can not help; the error says what to do",
            ),
        ]
    )
