"""Buttons on tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class ReportLink(BaseOperatorLink):
    """The address of the run's data quality report."""

    name = "Data quality report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address that stage returned; empty before that."""
        staged: Any = getattr(operator, "staged", None)
        return str(staged.get("report") or "") if isinstance(staged, Mapping) else ""
