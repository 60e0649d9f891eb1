"""### Starts publications again: at each start of Contexture, when a publication changes, or by hand

**Input**: the asset `resync_requested`, updated by a watcher in the triggerer; or the form: publications (all when
empty), mode and reason. **Output**: one run of `publish_<name>` for each chosen publication.

- **choose** takes each publication's `resync` (`on_startup`, `on_config_change`: none, pending, full). A publication
  seen for the first time is no change; a paused one is left out and catches up by its own mode when it is resumed,
  or by a full run if it reads a registry and should have had one. The started run decides when its turn comes: after
  a full run since the start, it sends changes alone.
- **start** starts the runs and does not wait for them. A new publication's DAG appears some seconds after its file:
  the task tries again until it is there.

**When red:** `choose` names what is wrong with the request; `start` could not start a DAG: see whether its file shows
as an import error. Nothing is lost: start this DAG again, or the publication itself.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context, Param, dag, get_current_context, task

from contexture_airflow.assets import resync_requested
from contexture_airflow.dag_defaults import default_args, mode_param, reason_param
from contexture_airflow.settings import RESYNCHRONISE_DAG
from contexture_airflow.steps.resync import choose_runs

PUBLICATIONS = Param(
    [],
    type="array",
    items={"type": "string"},
    title="Publications",
    description="Names, one a line; all when empty",
)


@task
def choose() -> list[dict[str, Any]]:
    """The runs to start, by the request and each publication's own policy."""
    context: Context = get_current_context()
    return choose_runs(context)


@dag(
    dag_id=RESYNCHRONISE_DAG,
    description="Starts publications at start-up, after a change, or by hand",
    doc_md=__doc__,
    schedule=[resync_requested()],
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={"publications": PUBLICATIONS, "mode": mode_param(), "reason": reason_param()},
    tags={"contexture", "operations"},
    default_args=default_args(),
)
def resynchronise() -> None:
    """Chooses, then starts."""
    TriggerDagRunOperator.partial(
        task_id="start",
        doc_md="Starts one publication's run; tries until its DAG is there.",
        logical_date=None,
        skip_when_already_exists=True,
        map_index_template="{{ task.trigger_dag_id }}",
        retries=20,
        retry_delay=timedelta(seconds=10),
    ).expand_kwargs(choose())


resynchronise()
