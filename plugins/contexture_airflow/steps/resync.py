"""Which runs a request to resynchronise starts, and in which mode."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowRuntimeError

from contexture.errors import ConfigurationError
from contexture.publications import Publication, fingerprint
from contexture_airflow.catalogue import publications
from contexture_airflow.settings import publication_dag_id

if TYPE_CHECKING:
    from airflow.sdk import Context

    from contexture.storage.home import Home
    from contexture.storage.publication_store import PublicationStore

_STRENGTH: Final = {"auto": 0, "changes": 1, "full": 2}
_MODE_OF_POLICY: Final = {"pending": "auto", "full": "full"}


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run to start.

    Attributes:
        since: from when on a concluded full run is enough, because it did what this run is requested for; None where
            a person requests the run.
    """

    publication: str
    mode: str
    reason: str
    since: datetime | None = None

    def trigger_arguments(self, requested_by: str) -> dict[str, Any]:
        """Arguments of `TriggerDagRunOperator`; the same request gives the same run id, so it starts a run once."""
        since = {} if self.since is None else {"since": self.since.isoformat()}
        return {
            "trigger_dag_id": publication_dag_id(self.publication),
            "trigger_run_id": f"resync__{requested_by}",
            "conf": {"mode": self.mode, "reason": self.reason, **since},
        }


@dataclass(frozen=True, slots=True)
class StateOrigin:
    """What made the target's content.

    Attributes:
        fingerprints: of the publication, when the last run concluded and when each outbox that waits was prepared;
            empty before the first run.
        full_at: when the last full run concluded.
    """

    fingerprints: frozenset[str] = frozenset()
    full_at: datetime | None = None


def starts_for_event(
    publications: Iterable[Publication], payload: Mapping[str, Any], find_state_origin: Callable[[str], StateOrigin]
) -> list[RunStart]:
    """Returns the runs that a start of Contexture or a change of files requires, by each publication's own `resync`.

    A reported change always starts a run, also where state has the new fingerprint already: a run that is under way
    may conclude with another one. The started run waits until that one has ended, and then decides by the state of
    that time whether everything is sent again; so its mode is auto.

    At a start state is compared too: it shows changes that no event reported, because Airflow's database is a new one
    or everything ended at that moment. A publication whose full run has concluded since the start is not loaded again.
    """
    reported = {str(change["publication"]) for change in payload.get("config_changed", [])}
    startup = bool(payload.get("startup"))
    since = datetime.fromisoformat(payload["since"]) if payload.get("since") else None
    found = []
    for publication in publications:
        made = find_state_origin(publication.name)
        if publication.name in reported or (startup and made.fingerprints - {fingerprint(publication)}):
            found.append(_after_change(publication, made, since))
        if startup:
            found.append(_at_startup(publication, made, since))
    return choose_strongest(start for start in found if start is not None)


def starts_by_hand(
    publications: Iterable[Publication], names: Iterable[str], mode: str, reason: str | None
) -> list[RunStart]:
    """The runs that a person asks for; all publications when none is named.

    Raises:
        ConfigurationError: there is no publication of a given name, or no such mode.
    """
    if mode not in _STRENGTH:
        raise ConfigurationError(f"there is no mode {mode!a}", next_step=f"choose among: {', '.join(_STRENGTH)}")
    known = [publication.name for publication in publications]
    wanted = list(dict.fromkeys(names)) or known
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise ConfigurationError(
            f"there is no publication {', '.join(unknown)}", next_step=f"choose among: {', '.join(known) or 'none'}"
        )
    return [RunStart(name, mode, reason or "requested by hand") for name in wanted]


def choose_strongest(starts: Iterable[RunStart]) -> list[RunStart]:
    """One run for each publication, ordered by name: the one that sends most."""
    best: dict[str, RunStart] = {}
    for start in starts:
        other = best.get(start.publication)
        if other is None or _STRENGTH[start.mode] > _STRENGTH[other.mode]:
            best[start.publication] = start
    return [best[name] for name in sorted(best)]


def _after_change(publication: Publication, made: StateOrigin, since: datetime | None) -> RunStart | None:
    policy = publication.resync.on_config_change
    if policy not in _MODE_OF_POLICY:
        return None
    # A first run sends everything, except a registry's: that one has to be requested in full.
    is_first_of_registry = not made.fingerprints and publication.source.has_log
    mode = _MODE_OF_POLICY[policy] if is_first_of_registry else "auto"
    return RunStart(publication.name, mode, "the publication has changed", since)


def _at_startup(publication: Publication, made: StateOrigin, since: datetime | None) -> RunStart | None:
    mode = _MODE_OF_POLICY.get(publication.resync.on_startup)
    is_loaded = since is not None and made.full_at is not None and made.full_at >= since
    if mode is None or (is_loaded and mode == "full"):
        return None
    return RunStart(publication.name, mode, "start of Contexture", since)


log = logging.getLogger(__name__)


def choose_runs(context: Context) -> list[dict[str, Any]]:
    """Arguments for `TriggerDagRunOperator`, one for each run to start.

    Paused publications are left out; where one that reads a registry should have sent everything, its next run will.

    Raises:
        ConfigurationError: the form names a publication that does not exist.
    """
    payloads = list(_payloads(context))
    chosen = _by_form(context) if not payloads else choose_strongest(_by_events(payloads))
    paused = [start for start in chosen if _is_paused(context, start)]
    if paused:
        _owe(paused)
    starts = [start for start in chosen if start not in paused]
    return [start.trigger_arguments(context["dag_run"].run_id) for start in starts]


def _by_form(context: Context) -> list[RunStart]:
    params = context["params"]
    return starts_by_hand(publications(), params["publications"], params["mode"], params["reason"])


def _by_events(payloads: Iterable[Mapping[str, Any]]) -> list[RunStart]:
    known = list(publications())
    starts: list[RunStart] = []
    for payload in payloads:
        if "publications" in payload:
            starts += starts_by_hand(
                known, payload["publications"], payload.get("mode", "full"), payload.get("reason", "asset event")
            )
        else:
            starts += starts_for_event(known, payload, _find_state_origin)
    return starts


def _payloads(context: Context) -> Iterable[Mapping[str, Any]]:
    """Of the watcher's events, and of events that others made by REST: those may name publications, mode and reason."""
    for events in context["triggering_asset_events"].values():
        for event in events:
            extra = event.extra or {}
            payload = extra.get("payload", extra)
            yield payload if isinstance(payload, Mapping) else {}


def _owe(paused: list[RunStart]) -> None:
    from contexture_airflow.connections.settings import open_home

    require_full_runs_of_paused(open_home(), publications(), paused)


def _is_paused(context: Context, start: RunStart) -> bool:
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


def _find_state_origin(publication: str) -> StateOrigin:
    from contexture_airflow.connections.settings import open_home

    return find_state_origin(open_home().publication(publication))


def require_full_runs_of_paused(home: Home, publications: Iterable[Publication], paused: Iterable[RunStart]) -> None:
    """Makes the next run of a registry's publication full, where a full one could not start because it is paused.

    Nothing is queued: however often it was asked for, one run sends everything. A broker's publication needs no note,
    for each of its runs compares the source with state.
    """
    from contexture.storage.conclusion import require_full_run

    wanted = {start.publication: start.reason for start in paused if start.mode == "full"}
    for publication in publications if wanted else ():
        if publication.source.has_log and publication.name in wanted:
            require_full_run(home.publication(publication.name), f"{wanted[publication.name]} (while it was paused)")


def find_state_origin(store: PublicationStore) -> StateOrigin:
    """Returns what made the target's content, and what the outboxes that wait will make of it."""

    pointer, outboxes = store.state.pointer(), store.outboxes
    waiting = [outboxes.manifest(status.outbox) for status in outboxes.pending() if status.status == "approved"]
    # A backfill leaves the fingerprint of state as it is.
    found = {pointer.fingerprint, *(each.fingerprint for each in waiting if each.mode != "backfill")}
    return StateOrigin(frozenset(each for each in found if each is not None), pointer.full_concluded_at)
