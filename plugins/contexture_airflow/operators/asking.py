"""Waiting for a person's answer, as the operators of Airflow's standard provider do."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import Param

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.exceptions import TaskAwaitingInput

    from contexture.publications import Publication
    from contexture.storage.shrink_report import Vanishing


def ask_about_shrinking(context: Context, publication: Publication, vanishing: Vanishing) -> TaskAwaitingInput:
    """Puts the question where Airflow shows what people have to do; gives what the task raises to wait for the answer.

    It waits in state `awaiting_input`, which holds no slot. Its `go_on` is called with the answer, or with an
    error when none came in time.
    """
    from airflow.sdk.exceptions import TaskAwaitingInput
    from airflow.sdk.execution_time.hitl import upsert_hitl_detail

    from contexture_airflow.steps.shrinking import APPROVE, REJECT, question

    reason = Param("", type="string", title="Reason", description="Kept, for whoever asks later")
    upsert_hitl_detail(
        ti_id=context["task_instance"].id,
        options=[APPROVE, REJECT],
        subject=f"{publication.name}: {vanishing.count} of {vanishing.held} would be deleted",
        body=question(publication, vanishing),
        params={"reason": reason.serialize()},
    )
    hours = publication.source.shrink_limit.answer_hours
    return TaskAwaitingInput(method_name="go_on", timeout=timedelta(hours=hours))
