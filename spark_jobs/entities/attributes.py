"""The attributes of a run: their NGSI types, collected by tasks, and the columns that the checkpoint judges."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec
import orjson
import pyarrow as pa

from contexture.publications import Publication
from contexture.records.changes.attribute_types import MOST, AttributeType, AttributeTypes
from contexture.sources.ngsi.entity import ParsedEntity
from contexture.storage.folder import StoredFolder
from contexture.storage.state import StatePointer
from spark_jobs.entities.render import Candidate
from spark_jobs.quality.columns import column_names
from spark_jobs.shared.context import StageContext, event_number

Values = tuple[str | float | None, ...]


class JudgedAttributes:
    """The type and number of each attribute that a publication's quality section names, in the order of their columns.

    Attributes:
        nothing: the values of an event that is not judged.
    """

    def __init__(self, publication: Publication) -> None:
        self._names = tuple(column_names(publication))
        self.nothing: Values = (None,) * (2 * len(self._names))

    def of(self, parsed: ParsedEntity) -> Values:
        """Returns the values of one entity."""
        if not self._names:
            return self.nothing
        return tuple(value for name in self._names for value in type_and_number(parsed.attributes.get(name)))


def type_and_number(attribute: object) -> tuple[str | None, float | None]:
    """Returns the NGSI type of an attribute, and its value if it is a number; both None without an attribute."""
    if not isinstance(attribute, dict):
        return None, None
    kind, value = attribute.get("type"), attribute.get("value")
    if isinstance(value, orjson.Fragment):
        value = float(orjson.dumps(value))
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return (kind if isinstance(kind, str) else ""), number


ATTRIBUTES_FOLDER = "attributes"
"""The folder of attribute rows, below the work folder of the run."""

LONGEST_TEXT = 1000
"""The limit of a value in characters, because the rows that are judged should not be as large as the run."""

ATTRIBUTE_ROWS = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("identity", pa.string(), nullable=False),
        pa.field("service_path", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("dataset_id", pa.string()),
        pa.field("attribute_type", pa.string()),
        pa.field("number", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("modified_at", pa.timestamp("us", tz="UTC")),
        pa.field("received_at", pa.timestamp("us", tz="UTC"), nullable=False),
    ]
)
"""`quality_combinations.ATTRIBUTE_COLUMNS` without the service, which is the same for all."""


class AttributeRow(NamedTuple):
    """A row of `ATTRIBUTE_ROWS`; times are microseconds since 1970."""

    event: int
    identity: str
    service_path: str
    id: str
    type: str
    attribute: str
    dataset_id: str | None
    attribute_type: str | None
    number: float | None
    text: str | None
    modified_at: int | None
    received_at: int


def judges_attributes(publication: Publication) -> bool:
    """Returns whether a publication has expectations on attributes."""
    return any(each.on == "attributes" for each in publication.quality.expectations)


def attribute_rows(candidate: Candidate) -> Iterator[AttributeRow]:
    """Yields the attributes of an event: all attributes of an entity, or the one attribute that the event is."""
    parsed, row = candidate.parsed, candidate.row
    identity = parsed.identity
    for key, attribute in parsed.attributes.items():
        name = parsed.attribute_name(key)
        if candidate.attribute in {None, name}:
            kind, number = type_and_number(attribute)
            yield AttributeRow(
                event=event_number(row.ordinal, candidate.part),
                identity=candidate.key.decode(),
                service_path=identity.service_path,
                id=identity.id,
                type=identity.type,
                attribute=name.name,
                dataset_id=name.dataset_id,
                attribute_type=kind,
                number=number,
                text=_text(attribute),
                modified_at=candidate.modified_at,
                received_at=row.received_at,
            )


def _text(attribute: object) -> str | None:
    value: Any = attribute.get("value") if isinstance(attribute, dict) else None
    return value[:LONGEST_TEXT] if isinstance(value, str) else None


_LOGGED = 5
_log = logging.getLogger(__name__)


class SeenTypes:
    """The attribute types that one task has seen."""

    def __init__(self) -> None:
        self._seen: set[AttributeType] = set()

    def add(self, parsed: ParsedEntity) -> None:
        """Adds the types of the attributes of one entity."""
        entity_type, seen = parsed.identity.type, self._seen
        for name, attribute in parsed.attributes.items():
            if isinstance(attribute, dict):
                kind = attribute.get("type")
                if isinstance(kind, str):
                    key = (entity_type, name if parsed.datasets is None else parsed.attribute_name(name).name, kind)
                    if key not in seen:
                        seen.add(AttributeType(*key))

    def save(self, work: StoredFolder, first_ordinal: int) -> None:
        """Writes the types where `find_type_drift` reads them; a repeated task writes the same file again."""
        if self._seen:
            kept = sorted(self._seen)[: MOST + 1]
            work.folder(_TYPES).write(f"{first_ordinal:020d}.json", msgspec.json.encode(kept))


_TYPES: Final = "types"


def find_type_drift(context: StageContext) -> list[AttributeType]:
    """Returns the types that attributes had in no run before, and writes all seen types beside the outbox.

    Conclude adds these to the known types.
    """
    folder = context.work.folder(_TYPES)
    files = [folder.read(name) for name in folder.files(".json")]
    seen = AttributeTypes.of(each for file in files for each in msgspec.json.decode(file, type=list[AttributeType]))
    context.records.write_seen_types(seen)
    state = context.store.state
    new = state.attribute_types(StatePointer.model_validate_json(context.pointer_json)).new_in(seen)
    for entity_type, name, kind in new[:_LOGGED]:
        _log.warning("the attribute %s of %s has the type %s, which it did not have before", name, entity_type, kind)
    return new
