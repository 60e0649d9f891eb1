"""What operators share: buttons to the Contexture page, and deferring after errors of sending."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseOperatorLink, conf
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from contexture_airflow.web.rendering import Places

Result = TypeVar("Result")


def defer_send_errors(operator: BaseOperator, send: Callable[[], Result]) -> Result:
    """The result of `send`.

    A late attempt ends the process: the triggerer waits, no worker slot is held, and the operator's `resume` is called
    when the time has come. (Being deferred uses up none of Airflow's own retries.)

    Raises:
        AirflowFailException: no attempt is left. `batch_ttl` counts sends, and Airflow's retries must not add to it.
    """
    from contexture_airflow.steps.publish import AttemptsUsedUpError, SendLaterError

    try:
        return send()
    except AttemptsUsedUpError as error:
        raise AirflowFailException(str(error)) from error
    except SendLaterError as later:
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        operator.log.info("%s; the task frees its slot until then", later)
        operator.defer(trigger=DateTimeTrigger(moment=later.at), method_name="resume")


class ReportLink(BaseOperatorLink):
    """The run's data quality report."""

    name = "Data quality report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Returns the report's address on the Contexture page; empty, so no button, where the run left no report."""
        staged: Any = getattr(operator, "staged", None)
        if not isinstance(staged, Mapping) or not staged.get("report"):
            return ""
        return contexture_page().report(staged["publication"], staged["outbox"])


class TransactionsLink(BaseOperatorLink):
    """The transactions of the shard that a task sends."""

    name = "Transactions"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Returns the address on the Contexture page; empty, so no button, where nothing was staged."""
        staged: Any = getattr(operator, "staged", None)
        if not isinstance(staged, Mapping) or not staged.get("outbox"):
            return ""
        shard: Any = getattr(operator, "shard", None)
        which = {"outbox": staged["outbox"], "shard": shard if isinstance(shard, int) else None}
        return contexture_page().publication(staged["publication"], "transactions", **which)


class VerificationLink(BaseOperatorLink):
    """The verification's report."""

    name = "Verification report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Returns the report's address on the Contexture page; empty before the task has read the topics."""
        path = getattr(operator, "report_path", None)
        return contexture_page().verification_file(getattr(operator, "publication", ""), path) if path else ""


def contexture_page() -> Places:
    """Returns the addresses of the Contexture page, without scheme and host.

    The browser knows both, and a worker may not. `[api] base_url` has the path that a proxy puts before all pages.
    """
    from urllib.parse import urlsplit

    from contexture_airflow.web.asgi import PREFIX
    from contexture_airflow.web.rendering import Places

    return Places(urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/") + PREFIX)
