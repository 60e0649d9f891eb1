"""The attributes that the checkpoint judges: their types and numbers, beside the narrow rows."""

from __future__ import annotations

import orjson

from contexture.publications import Publication
from contexture.sources.ngsi.entity import ParsedEntity
from spark_jobs.quality.columns import column_names

Values = tuple[str | float | None, ...]


class JudgedAttributes:
    """Type and number of each attribute that a publication's quality names, in the order of their columns.

    Attributes:
        nothing: the values of an event that is not judged.
    """

    def __init__(self, publication: Publication) -> None:
        self._names = tuple(column_names(publication))
        self.nothing: Values = (None,) * (2 * len(self._names))

    def of(self, parsed: ParsedEntity) -> Values:
        """The values of one entity."""
        if not self._names:
            return self.nothing
        return tuple(value for name in self._names for value in type_and_number(parsed.attributes.get(name)))


def type_and_number(attribute: object) -> tuple[str | None, float | None]:
    """The NGSI type of an attribute, and its value where it is a number; both None where there is no attribute."""
    if not isinstance(attribute, dict):
        return None, None
    kind, value = attribute.get("type"), attribute.get("value")
    if isinstance(value, orjson.Fragment):
        value = float(orjson.dumps(value))
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    return (kind if isinstance(kind, str) else ""), number
