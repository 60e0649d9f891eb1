"""Airflow's own form for a backfill, filled in as a person does."""

from __future__ import annotations

from datetime import datetime

from e2e.browser import Browser

_DATE, _TIME = "input[placeholder='YYYY/MM/DD']", "input[placeholder='HH:mm']"


def begin_backfill(window: Browser, dag_id: str, first: datetime, last: datetime, **params: str) -> None:
    """Asks for all runs from the interval that starts at `first` to the one that starts at `last`, both in UTC.

    Args:
        window: of a user who may.
        dag_id: of the DAG.
        first: start of an interval.
        last: start of an interval.
        params: what is typed below *Run Parameters*.
    """
    window.open_airflow(f"dags/{dag_id}")
    window.press("button", "Trigger")
    # Until the page knows that the DAG has intervals, the choice takes no click.
    window.press("label:not([data-disabled])", "Backfill")
    for place, at in enumerate((first, last)):
        _choose(window, place, at)
    window.press("label", "All Runs")
    # Without it the form sends nothing of its own parameters.
    window.press("label", "Override parameters on existing runs")
    for name, value in params.items():
        window.find(f"[name=element_{name}]").send_keys(value)
    window.press("button", "Run Backfill")


def _choose(window: Browser, place: int, at: datetime) -> None:
    """Opens a field for a time, types into what comes up, and closes it by a click beside it."""
    window.press("[data-testid=datetime-input]", place=place)
    window.write(_DATE, f"{at:%Y/%m/%d}")
    # A date that is whole fills the field of the time by itself.
    window.write(_TIME, f"{at:%H:%M}")
    window.press("h2", "Run Backfill")
    window.await_gone(_TIME)
