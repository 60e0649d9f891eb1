"""The NGSI types of attributes that a run sees, collected by its tasks, and what is new about them."""

from __future__ import annotations

import logging

import msgspec

from contexture.records.changes.attribute_types import MOST, AttributeTypes, Seen
from contexture.sources.ngsi.entity import ParsedEntity
from contexture.storage.home import Storage
from contexture.storage.state import State, StatePointer
from spark_jobs.preparation.settings import Preparation

_LOGGED = 5
_log = logging.getLogger(__name__)


class SeenTypes:
    """What one task sees."""

    def __init__(self) -> None:
        self._seen: set[Seen] = set()

    def note(self, parsed: ParsedEntity) -> None:
        """The types of one entity's attributes."""
        entity_type, seen = parsed.identity.type, self._seen
        for name, attribute in parsed.attributes.items():
            if isinstance(attribute, dict):
                kind = attribute.get("type")
                if isinstance(kind, str):
                    seen.add((entity_type, name if parsed.datasets is None else parsed.attribute_name(name).name, kind))

    def save(self, storage: Storage, work: str, first_ordinal: int) -> None:
        """Leaves them where `drift` finds them; a task that is repeated writes the same again."""
        if self._seen:
            kept = sorted(self._seen)[: MOST + 1]
            storage.write(f"{work}/types/{first_ordinal:020d}.json", msgspec.json.encode(kept))


def drift(storage: Storage, preparation: Preparation) -> list[Seen]:
    """The types that attributes have now and had in no run before; what was seen is left for conclude."""
    folder = f"{preparation.work}/types"
    files = [storage.read(f"{folder}/{name}") for name in storage.files(folder, ".json")]
    seen = AttributeTypes.of(each for file in files for each in msgspec.json.decode(file, type=list[Seen]))
    storage.write(preparation.folder.seen_types(preparation.outbox), seen.to_json())
    state = State(storage, preparation.publication.name)
    new = state.attribute_types(StatePointer.model_validate_json(preparation.pointer_json)).new_in(seen)
    for entity_type, name, kind in new[:_LOGGED]:
        _log.warning("the attribute %s of %s has the type %s, which it did not have before", name, entity_type, kind)
    return new
