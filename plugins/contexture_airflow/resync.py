"""Which publications a request to resynchronise starts, and in which mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from contexture.errors import ConfigurationError
from contexture.publications import Publication, fingerprint
from contexture_airflow.settings import publication_dag_id

_STRENGTH: Final = {"auto": 0, "changes": 1, "full": 2}
_MODE_OF_POLICY: Final = {"pending": "auto", "full": "full"}

StateFingerprint = Callable[[str], str | None]
"""The fingerprint that a publication's last concluded run had; None before the first."""


@dataclass(frozen=True, slots=True)
class Start:
    """A run to start."""

    publication: str
    mode: str
    reason: str

    def trigger_arguments(self, requested_by: str) -> dict[str, Any]:
        """Arguments of `TriggerDagRunOperator`; the same request gives the same run id, so it starts a run once."""
        return {
            "trigger_dag_id": publication_dag_id(self.publication),
            "trigger_run_id": f"resync__{requested_by}",
            "conf": {"mode": self.mode, "reason": self.reason},
        }


def starts_for_event(
    publications: Iterable[Publication], payload: Mapping[str, Any], state_fingerprint: StateFingerprint
) -> list[Start]:
    """The runs that a start of Contexture or a change of files asks for, by each publication's own `resync`.

    At a start the state is asked too: it knows of changes that nobody was told of, because Airflow's database is a new
    one or everything ended at that moment.
    """
    told = {str(change["publication"]) for change in payload.get("config_changed", [])}
    startup = bool(payload.get("startup"))
    found = []
    for publication in publications:
        if startup:
            found.append(_by_policy(publication, publication.resync.on_startup, "start of Contexture"))
        is_told = publication.name in told
        if (startup or is_told) and _is_owed(publication, state_fingerprint(publication.name), is_told=is_told):
            found.append(_by_policy(publication, publication.resync.on_config_change, "the publication has changed"))
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


def _is_owed(publication: Publication, held: str | None, *, is_told: bool) -> bool:
    # A run since then may have seen the change already; and what was never sent has changed only if somebody saw it.
    return is_told if held is None else held != fingerprint(publication)


def _by_policy(publication: Publication, policy: str, reason: str) -> Start | None:
    mode = _MODE_OF_POLICY.get(policy)
    return None if mode is None else Start(publication.name, mode, reason)
