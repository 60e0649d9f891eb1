"""Which publications a request to resynchronise starts, and in which mode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from contexture.errors import ConfigurationError
from contexture.publications import Publication
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
    """The runs that a start of Contexture or a change of files asks for, by each publication's own `resync`."""
    changes = {str(change["publication"]): str(change["new"]) for change in payload.get("config_changed", [])}
    found = []
    for publication in publications:
        if payload.get("startup"):
            found.append(_by_policy(publication, publication.resync.on_startup, "start of Contexture"))
        new = changes.get(publication.name)
        # A run since then may have seen the change already.
        if new is not None and state_fingerprint(publication.name) != new:
            found.append(_by_policy(publication, publication.resync.on_config_change, "the publication has changed"))
    return strongest(start for start in found if start is not None)


def starts_by_hand(
    publications: Iterable[Publication], names: Iterable[str], mode: str, reason: str | None
) -> list[Start]:
    """The runs that a person asks for; all publications when none is named.

    Raises:
        ConfigurationError: there is no publication of a given name.
    """
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


def _by_policy(publication: Publication, policy: str, reason: str) -> Start | None:
    mode = _MODE_OF_POLICY.get(policy)
    return None if mode is None else Start(publication.name, mode, reason)
