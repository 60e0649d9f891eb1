"""What the tasks take from Airflow's context; never `logical_date`, because it may be None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from contexture.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.storage.archive import Interval
    from contexture.storage.orders import ReplayOptions
    from contexture_airflow.run import RunRequest


REPLAY_PARAMS: Final = {
    "replay_from": "replay_from",
    "replay_incomplete": "incomplete",
    "replay_outdated": "outdated",
    "topic_prefix": "topic_prefix",
}
"""Params of a run that say how a backfill sends its interval again, and what they are called in its order."""


def run_request(context: Context) -> RunRequest:
    """The run's params and, for a backfill, its data interval."""
    from contexture_airflow.run import RunRequest

    params = context["params"]
    names = ("mode", "reason", "confirm_shrink", "republish", "dry_run", "retry_quarantine", "retry_rules")
    given = {name: params[name] for name in names if name in params}
    run = context["dag_run"]
    return RunRequest(
        run_id=run.run_id,
        run_type=_run_type(run),
        triggered_by=getattr(run, "triggering_user_name", None),
        interval=_interval(context),
        replay=_replay(params),
        since=(getattr(run, "conf", None) or {}).get("since"),
        **given,
    )


def _run_type(run: Any) -> str:
    return str(getattr(run.run_type, "value", run.run_type))


def _replay(params: Mapping[str, Any]) -> ReplayOptions:
    from contexture.storage.orders import ReplayOptions

    given = {field: params[name] for name, field in REPLAY_PARAMS.items() if params.get(name) is not None}
    return ReplayOptions.model_validate(given)


def _interval(context: Context) -> Interval | None:
    run = context["dag_run"]
    if _run_type(run) != "backfill":
        return None
    if run.data_interval_start is None or run.data_interval_end is None:
        raise ConfigurationError(
            "this backfill run has no data interval, so that nothing can be found in the archive",
            next_step="give the publication a schedule, and backfill its DAG again",
        )
    return run.data_interval_start, run.data_interval_end
