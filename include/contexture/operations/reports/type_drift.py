"""Which types attributes got that no earlier run saw, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from contexture.operations.reports.choosing import KeptRun
from contexture.operations.reports.documents import NewType
from contexture.records.changes.attribute_types import AttributeTypes
from contexture.storage.home import Storage
from contexture.storage.publication_store import PublicationFolder


@dataclass(frozen=True, slots=True)
class TypesOfRun:
    """How many attributes a run saw, and which of their types were new."""

    attributes: int
    new: tuple[NewType, ...]


def type_drift(storage: Storage, runs: Sequence[KeptRun]) -> dict[str, TypesOfRun]:
    """What each of the runs, which are given oldest first, saw, by outbox; runs that noted no types are left out.

    The first run that is kept has nothing to differ from. Backfills send the past, and are left out.

    Raises:
        RetriableError: the storage did not answer.
    """
    known, found = AttributeTypes(), {}
    for run in runs:
        seen = None if run.manifest.mode == "backfill" else _seen(storage, run)
        if seen is None:
            continue
        found[run.manifest.outbox] = TypesOfRun(len(seen.types), _new(known, seen))
        # What was refused as a whole becomes no state, so a later run differs from what was before it.
        if run.status.status not in {"rejected", "abandoned"}:
            known = known.after(seen, whole=run.manifest.mode == "full")
    return found


def _new(known: AttributeTypes, seen: AttributeTypes) -> tuple[NewType, ...]:
    return tuple(
        NewType(entity_type=entity, attribute=name, type=kind, before=tuple(sorted(known.types[entity, name])))
        for entity, name, kind in known.new_in(seen)
    )


def _seen(storage: Storage, run: KeptRun) -> AttributeTypes | None:
    path = PublicationFolder(run.manifest.publication).seen_types(run.manifest.outbox)
    try:
        return AttributeTypes.from_json(storage.read(path))
    except (FileNotFoundError, msgspec.DecodeError):
        return None
