"""The names of the two columns that each judged attribute has in the `entities` frame."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256

from contexture.publications import NgsiPublication, Publication
from contexture.publications.checks.quality import ENTITY_COLUMNS, written_columns

_IN_CONDITION = re.compile(r"`(?:value|type)_([^`]+)`|\b(?:value|type)_(\w+)")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
_PREFIXES = ("value_", "type_")


def column_names(publication: Publication) -> dict[str, str]:
    """Returns a safe column name for every attribute that the publication's quality section names, in a stable order.

    The frame has `type_<safe>` (the attribute's NGSI type, null if the entity lacks it) and `value_<safe>` (its number,
    null if it has none). A plain name stays as it is. Other names get a digest of the whole name, because Spark
    compares column names without case and NGSI names may contain almost any character.
    """
    names = sorted(set(_named(publication)))
    folded = Counter(name.casefold() for name in names)
    return {
        name: name if _PLAIN.fullmatch(name) and folded[name.casefold()] == 1 else _digested(name) for name in names
    }


def attribute_of(column: str) -> str | None:
    """Returns the attribute of a column `value_<attribute>` or `type_<attribute>`; None for any other column."""
    if column in ENTITY_COLUMNS:
        return None
    return next((column.removeprefix(each) for each in _PREFIXES if column.startswith(each)), None)


def column(written: str, safe: Mapping[str, str]) -> str:
    """Returns the frame's name of a column `value_<attribute>` or `type_<attribute>`, or of one of ENTITY_COLUMNS."""
    attribute = attribute_of(written)
    if attribute is None or attribute not in safe:
        return written
    return written.removesuffix(attribute) + safe[attribute]


def condition(written: str, safe: Mapping[str, str]) -> str:
    """Converts a SQL condition to the frame's column names; unusual attribute names are in backticks, as in all SQL."""

    def replace_name(match: re.Match[str]) -> str:
        plain = column(match[0].strip("`"), safe)
        return f"`{plain}`" if match[0].startswith("`") else plain

    return _IN_CONDITION.sub(replace_name, written)


def _named(publication: Publication) -> Iterator[str]:
    # Structures have no attributes, whatever a column is called.
    if not isinstance(publication, NgsiPublication):
        return
    quality = publication.quality
    yield from (*quality.required_attributes, *quality.attribute_types, *quality.ranges)
    for expectation in quality.expectations:
        if expectation.on != "entities":
            continue
        yield from filter(None, map(attribute_of, written_columns(expectation.kwargs)))
        yield from (quoted or plain for quoted, plain in _IN_CONDITION.findall(expectation.where or ""))


def _digested(name: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9]+", "_", name)[:40].strip("_")
    return f"{readable}_{sha256(name.encode()).hexdigest()[:10]}".lstrip("_")
