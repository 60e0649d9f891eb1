"""What is different about runs of a publication that reads a structure registry."""

from __future__ import annotations

from contexture.errors import ConfigurationError
from contexture.publications import Publication
from contexture.sending.target import Target
from contexture.storage.manifests import Mode
from contexture.storage.state import StatePointer
from contexture_airflow.steps.run import RunRequest


def first_run(publication: Publication, request: RunRequest) -> tuple[Mode, str]:
    """The mode of the first run, and why: a registry is idle until its next change unless someone wants everything."""
    if publication.source.kind != "sdmx":
        return "full", "the first run"
    if request.mode == "full":
        return "full", request.reason or "asked for"
    if publication.resync.on_startup == "full":
        return "full", "the first run, and resync.on_startup is full"
    if request.mode == "auto" and publication.source.mode == "full":
        return "full", "the publication's own mode"
    policy = publication.resync.on_startup
    return "changes", f"the first run notes what the registry holds and sends nothing (resync.on_startup is {policy})"


def is_baseline(publication: Publication, pointer: StatePointer, mode: Mode) -> bool:
    """Whether what the registry holds becomes state, and nothing is sent."""
    return publication.source.kind == "sdmx" and pointer.outbox is None and mode == "changes"


def told_by_others(publication: Publication, pointer: StatePointer, request: RunRequest, target: Target) -> int | None:
    """The registry transaction up to which the ledger says that the log is told, for a first run; None for all others.

    What another instance has not told yet would be lost if this one told something later first. A person who asks for
    everything takes over.
    """
    begins = publication.source.kind == "sdmx" and pointer.outbox is None and request.interval is None
    return target.log_told() if begins and request.mode != "full" else None


def check_selectors(publication: Publication) -> None:
    """Refuses what a registry can't be asked for, before anything is read.

    Raises:
        SelectorError: a selector of the publication can't be read.
    """
    # The splitter behind it would be loaded by every settle of every publication.
    from contexture.sources.sdmx.selectors import unreadable

    for _, error in unreadable(publication):
        raise error


def check_republish(publication: Publication, request: RunRequest, mode: Mode) -> None:
    """Refuses to send single transactions of a registry again.

    Raises:
        ConfigurationError: `republish` without mode full.
    """
    if request.republish and publication.source.kind == "sdmx" and mode == "changes":
        raise ConfigurationError(
            "a transaction of the registry that the ledger has is never sent twice",
            next_step="to send everything again, start a run in mode full",
            publication=publication.name,
        )
