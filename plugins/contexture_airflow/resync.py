"""Which publications a request to resynchronise starts, and in which mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from contexture.errors import ConfigurationError
from contexture.publications import Publication, fingerprint
from contexture_airflow.settings import publication_dag_id

_STRENGTH: Final = {"auto": 0, "changes": 1, "full": 2}
_MODE_OF_POLICY: Final = {"pending": "auto", "full": "full"}


@dataclass(frozen=True, slots=True)
class Start:
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
class Made:
    """What made the target's content.

    Attributes:
        fingerprints: of the publication, when the last run concluded and when each outbox that waits was prepared;
            empty before the first run.
        full_at: when the last full run concluded.
    """

    fingerprints: frozenset[str] = frozenset()
    full_at: datetime | None = None


def starts_for_event(
    publications: Iterable[Publication], payload: Mapping[str, Any], made_of: Callable[[str], Made]
) -> list[Start]:
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
        made = made_of(publication.name)
        if publication.name in reported or (startup and made.fingerprints - {fingerprint(publication)}):
            found.append(_after_change(publication, made, since))
        if startup:
            found.append(_at_startup(publication, made, since))
    return strongest(start for start in found if start is not None)


def starts_by_hand(
    publications: Iterable[Publication], names: Iterable[str], mode: str, reason: str | None
) -> list[Start]:
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
    return [Start(name, mode, reason or "asked for by hand") for name in wanted]


def strongest(starts: Iterable[Start]) -> list[Start]:
    """One run for each publication, ordered by name: the one that sends most."""
    best: dict[str, Start] = {}
    for start in starts:
        other = best.get(start.publication)
        if other is None or _STRENGTH[start.mode] > _STRENGTH[other.mode]:
            best[start.publication] = start
    return [best[name] for name in sorted(best)]


def _after_change(publication: Publication, made: Made, since: datetime | None) -> Start | None:
    policy = publication.resync.on_config_change
    if policy not in _MODE_OF_POLICY:
        return None
    # A first run sends everything, except a registry's: that one has to be requested in full.
    is_first_of_registry = not made.fingerprints and publication.source.kind == "sdmx"
    mode = _MODE_OF_POLICY[policy] if is_first_of_registry else "auto"
    return Start(publication.name, mode, "the publication has changed", since)


def _at_startup(publication: Publication, made: Made, since: datetime | None) -> Start | None:
    mode = _MODE_OF_POLICY.get(publication.resync.on_startup)
    is_loaded = since is not None and made.full_at is not None and made.full_at >= since
    if mode is None or (is_loaded and mode == "full"):
        return None
    return Start(publication.name, mode, "start of Contexture", since)
