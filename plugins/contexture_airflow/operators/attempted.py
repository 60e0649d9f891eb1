"""What the tasks that send do when an attempt is due late, or none is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

Result = TypeVar("Result")


def attempted(operator: BaseOperator, send: Callable[[], Result]) -> Result:
    """The result of `send`.

    A late attempt ends the process: the triggerer waits, no worker slot is held, and the operator's `go_on` is called
    when the time has come. (Being deferred uses up none of Airflow's own retries.)

    Raises:
        AirflowFailException: no attempt is left. `batch_ttl` counts sends, and Airflow's retries must not add to it.
    """
    from contexture_airflow.steps.attempting import AttemptsUsedUpError, SendLaterError

    try:
        return send()
    except AttemptsUsedUpError as error:
        raise AirflowFailException(str(error)) from error
    except SendLaterError as later:
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        operator.log.info("%s; the task gives its slot back until then", later)
        operator.defer(trigger=DateTimeTrigger(moment=later.at), method_name="go_on")
