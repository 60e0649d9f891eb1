"""What the task `choose` of the DAG `resynchronise` does with Airflow's context."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowRuntimeError

from contexture_airflow.catalogue import publications
from contexture_airflow.resync import Made, Start, starts_by_hand, starts_for_event, strongest
from contexture_airflow.settings import publication_dag_id

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)


def choose_runs(context: Context) -> list[dict[str, Any]]:
    """Arguments for `TriggerDagRunOperator`, one for each run to start.

    Paused publications are left out; where one that reads a registry should have sent everything, its next run will.

    Raises:
        ConfigurationError: the form names a publication that does not exist.
    """
    payloads = list(_payloads(context))
    chosen = _by_form(context) if not payloads else strongest(_by_events(payloads))
    paused = [start for start in chosen if _is_paused(context, start)]
    if paused:
        _owe(paused)
    starts = [start for start in chosen if start not in paused]
    return [start.trigger_arguments(context["dag_run"].run_id) for start in starts]


def _by_form(context: Context) -> list[Start]:
    params = context["params"]
    return starts_by_hand(publications(), params["publications"], params["mode"], params["reason"])


def _by_events(payloads: Iterable[Mapping[str, Any]]) -> list[Start]:
    known = list(publications())
    starts: list[Start] = []
    for payload in payloads:
        if "publications" in payload:
            starts += starts_by_hand(
                known, payload["publications"], payload.get("mode", "full"), payload.get("reason", "asset event")
            )
        else:
            starts += starts_for_event(known, payload, _made_of)
    return starts


def _payloads(context: Context) -> Iterable[Mapping[str, Any]]:
    """Of the watcher's events, and of events that others made by REST: those may name publications, mode and reason."""
    for events in context["triggering_asset_events"].values():
        for event in events:
            extra = event.extra or {}
            payload = extra.get("payload", extra)
            yield payload if isinstance(payload, Mapping) else {}


def _owe(paused: list[Start]) -> None:
    from contexture_airflow.steps.open import open_storage
    from contexture_airflow.steps.owing import owe_to_paused

    owe_to_paused(open_storage(), publications(), paused)


def _is_paused(context: Context, start: Start) -> bool:
    from airflow.sdk.api.client import ServerResponseError

    try:
        found: Any = context["ti"].get_dag(publication_dag_id(start.publication))
    except (AirflowRuntimeError, ServerResponseError):
        # The first by way of a worker's supervisor, the second within `airflow dags test`.
        # A new file's DAG is not there yet: the task that starts it tries until it is.
        return False
    if found.is_paused:
        log.info("%s is paused: it catches up by its own mode when it is resumed", start.publication)
    return bool(found.is_paused)


def _made_of(publication: str) -> Made:
    from contexture_airflow.steps.open import open_storage
    from contexture_airflow.steps.owing import made_of

    return made_of(open_storage(), publication)
