"""Defaults that the DAGs share: arguments, retries by the intent of an error, and the form of a run."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

from airflow.sdk import ExceptionRetryPolicy, Param, RetryAction, RetryRule

from contexture_airflow.settings import OWNER

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
                reason="a system that the task needs was not ready",
            ),
            RetryRule(
                [f"contexture.errors.{name}" for name in _NEEDS_A_PERSON],
                action=RetryAction.FAIL,
                reason="a retry cannot help; the error names the next step",
            ),
        ]
    )


MODES = ("auto", "full", "changes")
REPLAY_FROM = ("auto", "archive", "source")
# Without the tick Airflow sends nothing of what the form of a backfill says, and the interval goes to live topics.
BACKFILL_FORM = "In Airflow's form of a backfill it counts only with *Override parameters on existing runs* ticked"
# As of the orders that it goes into; parsing a DAG file doesn't load them.
TOPIC_PREFIX_PATTERN = r"^[A-Za-z0-9._-]{0,100}$"


def default_args() -> dict[str, Any]:
    """Owner and retries, the same for every task."""
    return {
        "owner": OWNER,
        "retries": RETRIES,
        "retry_delay": RETRY_DELAY,
        "retry_policy": retry_policy(),
        "execution_timeout": timedelta(hours=6),
    }


def runbook(operator: type) -> str:
    """The docstring of an operator without its arguments: what the task does, and what to do when it is red."""
    return (inspect.getdoc(operator) or "").split("\n\nArgs:")[0]


def mode_param() -> Param:
    """The mode of a run."""
    return Param(
        "auto",
        type="string",
        enum=list(MODES),
        title="Mode",
        description="auto: as the publication specifies; full: everything the source holds, and tombstones for what "
        "it no longer holds; changes: what differs from the last run",
    )


def reason_param() -> Param:
    """Why a person started a run."""
    return Param(None, type=["null", "string"], title="Reason", description="Stored with the run")


def replay_params() -> dict[str, Param]:
    """What the form asks about a backfill."""
    return {
        "replay_from": Param(
            "auto",
            type="string",
            enum=list(REPLAY_FROM),
            title="Backfill: from where",
            description="archive: what was sent at that time; source: what the source itself stores of that time (a "
            "registry's log, a broker's history); auto: the archive where it holds the whole interval, "
            f"else the source. {BACKFILL_FORM}",
        ),
        "replay_incomplete": Param(
            "refuse",
            type="string",
            enum=["refuse", "send"],
            title="Backfill: if something is missing",
            description="refuse: an incomplete interval fails and lists what is missing; send: what exists is sent. "
            f"{BACKFILL_FORM}",
        ),
        "replay_outdated": Param(
            "skip",
            type="string",
            enum=["skip", "send"],
            title="Backfill: old values on compacted topics",
            description="skip: records are left out where the target holds newer ones; send: old values replace "
            f"newer ones. {BACKFILL_FORM}",
        ),
        "topic_prefix": Param(
            None,
            type=["null", "string"],
            pattern=TOPIC_PREFIX_PATTERN,
            title="Backfill: to other topics",
            description="Prefix of the name of every topic, so that the live ones are not changed; empty for none. "
            f"{BACKFILL_FORM}",
        ),
    }


def run_params() -> dict[str, Param]:
    """The form of a publication's run."""
    return {
        "mode": mode_param(),
        "reason": reason_param(),
        "confirm_shrink": Param(
            False,
            type="boolean",
            title="Confirm shrinking",
            description="Allow more deletions than source.shrink_limit",
        ),
        "republish": Param(
            False,
            type="boolean",
            title="Send again",
            description="Prepare a new outbox even if the same one was sent already",
        ),
        "retry_quarantine": Param(
            None,
            type=["null", "string"],
            title="Retry a quarantine",
            description="Id of an outbox (or of a run): what its rules quarantined is retried, and the source is not "
            "read",
        ),
        "retry_rules": Param(
            [],
            type="array",
            items={"type": "string"},
            title="Only of these rules",
            description="With a quarantine to retry: only what one of these rules quarantined; empty: everything",
        ),
        **replay_params(),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description=f"Stop after the quality gate, with a preview of topics and counts in its log. {BACKFILL_FORM}",
        ),
    }
