"""Buttons on tasks. They lead to the Contexture page, below the path that Airflow's own pages have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink, conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from contexture_airflow.ui.rendering import Places


class ReportLink(BaseOperatorLink):
    """The run's data quality report."""

    name = "Data quality report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Returns the report's address on the Contexture page; empty, so no button, where the run left no report."""
        staged: Any = getattr(operator, "staged", None)
        if not isinstance(staged, Mapping) or not staged.get("report"):
            return ""
        return contexture_page().report(staged["publication"], staged["outbox"])


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

    from contexture_airflow.ui.mount import PREFIX
    from contexture_airflow.ui.rendering import Places

    return Places(urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/") + PREFIX)
