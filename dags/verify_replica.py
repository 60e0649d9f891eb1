"""### Reads the topics of publications back and compares them with what was sent, or with the source

**Input**: the topics of each chosen publication, read-committed, up to the last committed transaction. **Output**: a
report for each (a button on `verify`), and the outcome in the operational tables. Nothing is written to Kafka.

- **choose** takes the publications of the form, or all that have published something.
- **verify** compares the last value of each key and partition with state: missing, extra, different, in another order.
  Records without a key of their own are compared with the archived outboxes that sent them. Publications may run
  meanwhile: what is being sent is not judged. With `against: source` each key's last record is compared with what the
  context broker holds now: body, headers and time.

It reads whole topics, and runs only when a person starts it, unless `CONTEXTURE_VERIFY_SCHEDULE` holds a cron
expression.

**When red:** the topics hold something else than what was sent. Look at the report, find who else writes there or
removed records, then start the publication in mode full: it sends everything again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import Context, Param, dag, get_current_context, task

from contexture.operations import pools
from contexture_airflow.alerts.notifiers import VerificationNotifier
from contexture_airflow.dag_defaults import default_args, reason_param, runbook
from contexture_airflow.operators.verify_replica import VerifyReplicaOperator
from contexture_airflow.settings import VERIFY_DAG, verify_timetable

PUBLICATIONS = Param(
    [],
    type="array",
    items={"type": "string"},
    title="Publications",
    description="Names, one a line; all that have published something when empty",
)

AGAINST = Param(
    "sent",
    type="string",
    enum=["sent", "source"],
    title="Compare with",
    description="sent: what was sent, by state; source: what the source holds now, which reads all of it",
)


@task
def choose() -> list[str]:
    """The publications to look at."""
    from contexture_airflow.catalogue import publications
    from contexture_airflow.connections.settings import open_home
    from contexture_airflow.steps.verify import select_publications

    context: Context = get_current_context()
    return select_publications(
        open_home(), publications(), context["params"]["publications"], context["params"]["against"]
    )


@dag(
    dag_id=VERIFY_DAG,
    description="Reads topics back and compares them with what was sent, or with the source",
    doc_md=__doc__,
    schedule=verify_timetable(),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params={"publications": PUBLICATIONS, "against": AGAINST, "reason": reason_param()},
    tags={"contexture", "operations"},
    default_args=default_args(),
)
def verify_replica() -> None:
    """Chooses, then looks at each."""
    VerifyReplicaOperator.partial(
        task_id="verify",
        against="{{ params.against }}",
        doc_md=runbook(VerifyReplicaOperator),
        pool=pools.BROKER,
        map_index_template="{{ task.publication }}",
        on_failure_callback=VerificationNotifier(),
    ).expand(publication=choose())


verify_replica()
