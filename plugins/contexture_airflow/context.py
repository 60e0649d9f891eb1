"""What the tasks take from Airflow's context; `logical_date` is never asked for, it may be None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contexture.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture_airflow.steps.run import Interval, RunRequest


def run_request(context: Context) -> RunRequest:
    """The run's params and, for a backfill, its data interval."""
    from contexture_airflow.steps.run import RunRequest

    params = context["params"]
    names = ("mode", "reason", "confirm_shrink", "republish", "dry_run", "retry_quarantine", "retry_rules")
    given = {name: params[name] for name in names if name in params}
    return RunRequest(run_id=context["dag_run"].run_id, interval=_interval(context), **given)


def _interval(context: Context) -> Interval | None:
    run = context["dag_run"]
    if str(getattr(run.run_type, "value", run.run_type)) != "backfill":
        return None
    if run.data_interval_start is None or run.data_interval_end is None:
        raise ConfigurationError(
            "this backfill run has no data interval, so there is nothing to look for in the archive",
            next_step="give the publication a schedule, and backfill its DAG again",
        )
    return run.data_interval_start, run.data_interval_end
