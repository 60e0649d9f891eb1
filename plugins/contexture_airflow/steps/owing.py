"""What paused publications owe: the full run that they should have had meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from contexture.outbox.conclusion import owe_full
from contexture.outbox.storage import Storage
from contexture.publications import Publication
from contexture_airflow.resync import Start


def owe_to_paused(storage: Storage, publications: Iterable[Publication], paused: Iterable[Start]) -> None:
    """Makes the next run of a registry's publication full, where a full one could not start because it is paused.

    Nothing is queued: however often it was asked for, one run sends everything. A broker's publication needs no note,
    for each of its runs compares the source with state.
    """
    wanted = {start.publication: start.reason for start in paused if start.mode == "full"}
    for publication in publications if wanted else ():
        if publication.source.kind == "sdmx" and publication.name in wanted:
            owe_full(storage, publication.name, f"{wanted[publication.name]} (while it was paused)")
