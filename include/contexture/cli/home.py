"""Finding publications and outboxes below CONTEXTURE_HOME."""

from __future__ import annotations

from dataclasses import dataclass

from contexture.errors import ConfigurationError
from contexture.storage.home import HOME_VARIABLE, Storage, home_uri
from contexture.storage.outboxes import Outboxes, OutboxStatus

_SHORTEST_PREFIX = 4


@dataclass(frozen=True, slots=True)
class Found:
    """One outbox, its publication's outboxes, and where it stands."""

    outboxes: Outboxes
    status: OutboxStatus

    @property
    def publication(self) -> str:
        """The name of its publication."""
        return self.outboxes.folder.publication


def open_home() -> Storage:
    """The files below CONTEXTURE_HOME, which must be that of Airflow's tasks."""
    return Storage(home_uri())


def publications(storage: Storage) -> list[str]:
    """The names of all publications that have files there, sorted."""
    return [name for name in storage.folders("") if _has_runs(storage, name)]


def outboxes(storage: Storage, publication: str | None) -> list[Outboxes]:
    """The outboxes of one publication, or of all.

    Raises:
        ConfigurationError: the publication has no files there.
    """
    known = publications(storage)
    if publication is not None and publication not in known:
        raise ConfigurationError(
            f"publication {publication} has no files in {storage.root}",
            next_step=f"choose among: {', '.join(known)}" if known else f"set {HOME_VARIABLE} as Airflow has it",
        )
    return [Outboxes(storage, name) for name in ([publication] if publication else known)]


def find_outbox(storage: Storage, text: str) -> Found:
    """The outbox of an id, or of the beginning of one.

    Raises:
        ConfigurationError: there is none, or several begin like that.
    """
    found = [(each, name) for each in outboxes(storage, None) for name in _matching(each, text)]
    if len(found) != 1:
        several = f"{len(found)} outboxes begin with {text}: {', '.join(name for _, name in found[:5])}"
        raise ConfigurationError(
            several if found else f"there is no outbox {text} in {storage.root}",
            next_step="give more of the id"
            if found
            else f"list them with: contexture outbox list --all ({HOME_VARIABLE} must be as Airflow has it)",
        )
    owner, name = found[0]
    return Found(owner, owner.status(name))


def _matching(owner: Outboxes, text: str) -> list[str]:
    names = owner.storage.folders(owner.folder.outboxes())
    exact = [name for name in names if name == text]
    if exact or len(text) < _SHORTEST_PREFIX:
        return exact
    return [name for name in names if name.startswith(text) and owner.storage.exists(owner.folder.status(name))]


def _has_runs(storage: Storage, name: str) -> bool:
    owner = Outboxes(storage, name)
    parts = (owner.folder.outboxes(), owner.folder.state(), f"{name}/runs", f"{name}/inbox")
    return any(storage.exists(part) for part in parts)
