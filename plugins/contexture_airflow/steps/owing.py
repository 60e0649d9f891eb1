"""What requests to resynchronise read from storage, and write there for paused publications."""

from __future__ import annotations

from collections.abc import Iterable

from contexture.publications import Publication
from contexture.storage.conclusion import owe_full
from contexture.storage.home import Storage
from contexture.storage.outboxes import Outboxes
from contexture.storage.state import State
from contexture_airflow.resync import Made, Start


def owe_to_paused(storage: Storage, publications: Iterable[Publication], paused: Iterable[Start]) -> None:
    """Makes the next run of a registry's publication full, where a full one could not start because it is paused.

    Nothing is queued: however often it was asked for, one run sends everything. A broker's publication needs no note,
    for each of its runs compares the source with state.
    """
    wanted = {start.publication: start.reason for start in paused if start.mode == "full"}
    for publication in publications if wanted else ():
        if publication.source.kind == "sdmx" and publication.name in wanted:
            owe_full(storage, publication.name, f"{wanted[publication.name]} (while it was paused)")


def made_of(storage: Storage, publication: str) -> Made:
    """Returns what made the target's content, and what the outboxes that wait will make of it."""
    pointer, outboxes = State(storage, publication).pointer(), Outboxes(storage, publication)
    waiting = [outboxes.manifest(status.outbox) for status in outboxes.pending() if status.status == "approved"]
    # A backfill leaves the fingerprint of state as it is.
    found = {pointer.fingerprint, *(each.fingerprint for each in waiting if each.mode != "backfill")}
    return Made(frozenset(each for each in found if each is not None), pointer.full_concluded_at)
