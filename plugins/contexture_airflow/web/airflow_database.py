"""What the page reads of Airflow's database, within the API server: the only module that does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails, DagAccessEntity, DagDetails
from airflow.models.connection import Connection
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState, TaskInstanceState
from sqlalchemy import select
from sqlalchemy.orm import Session

from contexture.operations.status.detail import StepTime
from contexture.operations.status.health import DagFacts, OpenQuestion
from contexture_airflow.settings import publication_dag_id

_PREFIX = publication_dag_id("")
_ACTIVE = (DagRunState.QUEUED, DagRunState.RUNNING)
_WORST_FIRST = ("failed", "upstream_failed", "running", "deferred", "up_for_retry", "queued", "scheduled")


class AirflowFacts(Protocol):
    """What the page needs to know of Airflow."""

    def dags(self, user: Any) -> Mapping[str, DagFacts]:
        """The DAGs of publications that a user may read, by the publication's name."""

    def name(self, user: Any) -> str:
        """What a user is called."""

    def may_act(self, user: Any, publication: str) -> bool:
        """Whether a user may start runs of a publication's DAG, and suspend it."""

    def may_act_on_all(self, user: Any) -> bool:
        """Whether a user may start runs of all DAGs, and edit them."""

    def may_test(self, user: Any, connection: str | None) -> bool:
        """Whether a user may test a connection; None: any at all."""

    def may_see_connection(self, user: Any, connection: str) -> bool:
        """Whether a user may see a connection, without its secrets."""

    def connection_types(self) -> Mapping[str, str]:
        """The types of the connections in Airflow's database, by id."""

    def has_dag(self, dag_id: str) -> bool:
        """Whether Airflow knows a DAG."""

    def steps(self, publication: str, run_ids: Sequence[str]) -> Mapping[str, tuple[StepTime, ...]]:
        """How long the tasks of runs took, by run id; runs that Airflow has forgotten are left out."""


class AirflowDatabase:
    """The answers of Airflow's auth manager and database."""

    def dags(self, user: Any) -> Mapping[str, DagFacts]:
        """See `AirflowFacts`."""
        with create_session() as session:
            readable = get_auth_manager().get_authorized_dag_ids(user=user, method="GET", session=session)
            ids = sorted(dag_id for dag_id in readable if dag_id.startswith(_PREFIX))
            active = set(
                session.scalars(
                    select(DagRun.dag_id).where(DagRun.state.in_(_ACTIVE), DagRun.dag_id.in_(ids)).distinct()
                )
            )
            wanted = select(DagModel.dag_id, DagModel.is_paused, DagModel.next_dagrun_create_after)
            rows = session.execute(wanted.where(DagModel.dag_id.in_(ids))).all()
            questions = _questions(session, ids)
        return {
            dag_id.removeprefix(_PREFIX): DagFacts(paused, dag_id in active, next_run_at, questions.get(dag_id))
            for dag_id, paused, next_run_at in rows
        }

    def name(self, user: Any) -> str:
        """See `AirflowFacts`."""
        return str(user.get_name())

    def may_act(self, user: Any, publication: str) -> bool:
        """See `AirflowFacts`."""
        manager, dag_id = get_auth_manager(), publication_dag_id(publication)
        details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
        starts = manager.is_authorized_dag(method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user)
        return starts and manager.is_authorized_dag(method="PUT", details=details, user=user)

    def may_act_on_all(self, user: Any) -> bool:
        """See `AirflowFacts`."""
        manager = get_auth_manager()
        starts = manager.is_authorized_dag(method="POST", access_entity=DagAccessEntity.RUN, user=user)
        return starts and manager.is_authorized_dag(method="PUT", user=user)

    def may_test(self, user: Any, connection: str | None) -> bool:
        """See `AirflowFacts`; the right is that of Airflow's own test of connections."""
        details = None if connection is None else ConnectionDetails(conn_id=connection)
        return get_auth_manager().is_authorized_connection(method="POST", details=details, user=user)

    def may_see_connection(self, user: Any, connection: str) -> bool:
        """See `AirflowFacts`; the right is that of Airflow's own page of connections."""
        details = ConnectionDetails(conn_id=connection)
        return get_auth_manager().is_authorized_connection(method="GET", details=details, user=user)

    def connection_types(self) -> Mapping[str, str]:
        """See `AirflowFacts`."""
        with create_session() as session:
            rows = session.execute(select(Connection.conn_id, Connection.conn_type)).all()
        return {connection_id: kind or "" for connection_id, kind in rows}

    def has_dag(self, dag_id: str) -> bool:
        """See `AirflowFacts`."""
        with create_session() as session:
            return session.scalar(select(DagModel.is_stale).where(DagModel.dag_id == dag_id)) is False

    def steps(self, publication: str, run_ids: Sequence[str]) -> Mapping[str, tuple[StepTime, ...]]:
        """See `AirflowFacts`."""
        task = TaskInstance
        columns = (task.run_id, task.task_id, task.map_index, task.state, task.start_date, task.end_date)
        wanted = select(*columns).where(task.dag_id == publication_dag_id(publication), task.run_id.in_(run_ids))
        with create_session() as session:
            rows = session.execute(wanted).all()
        by_task: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for row in rows:
            by_task[row.run_id, row.task_id].append(row)
        return _by_run(by_task)


def _questions(session: Session, dag_ids: Sequence[str]) -> dict[str, OpenQuestion]:
    """Returns the open question of each DAG's runs; of several the one that was asked first."""
    task = TaskInstance
    asked = (
        select(task.dag_id, task.run_id, task.task_id, task.trigger_timeout)
        .join(HITLDetail, HITLDetail.ti_id == task.id)
        .where(task.state == TaskInstanceState.AWAITING_INPUT, task.dag_id.in_(dag_ids))
        .where(HITLDetail.responded_at.is_(None))
        .order_by(HITLDetail.created_at.desc())
    )
    rows = session.execute(asked)
    return {dag_id: OpenQuestion(run_id, task_id, until) for dag_id, run_id, task_id, until in rows}


def _by_run(by_task: Mapping[tuple[str, str], Sequence[Any]]) -> dict[str, tuple[StepTime, ...]]:
    begun: dict[str, list[tuple[float, StepTime]]] = defaultdict(list)
    for (run_id, task), shards in by_task.items():
        starts = [row.start_date for row in shards if row.start_date]
        if starts:
            state, shard = _worst(shards)
            step = StepTime(task, state, _seconds(starts, [row.end_date for row in shards]), shard, min(starts))
            begun[run_id].append((min(starts).timestamp(), step))
    return {
        run_id: tuple(step for _, step in sorted(steps, key=lambda each: each[0])) for run_id, steps in begun.items()
    }


def _seconds(starts: Sequence[datetime], ends: Sequence[datetime | None]) -> float | None:
    ended = [end for end in ends if end is not None]
    return (max(ended) - min(starts)).total_seconds() if len(ended) == len(ends) else None


def _worst(shards: Sequence[Any]) -> tuple[str, int | None]:
    """Returns the state of several shards that matters most, and the first shard that has it."""
    states_of_shards = [(str(getattr(row.state, "value", row.state) or "none"), row.map_index) for row in shards]
    states = {state for state, _ in states_of_shards}
    worst = next((state for state in _WORST_FIRST if state in states), states_of_shards[0][0])
    first = min(index for state, index in states_of_shards if state == worst)
    return worst, None if first < 0 else first
