"""Expectations that the publication's author wrote, by Great Expectations' own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from pydantic import JsonValue

from contexture.publications import Publication
from contexture.publications.checks.quality import COLUMN_ARGUMENTS
from contexture.publications.quality import class_name
from spark_jobs.quality.columns import column, column_names, condition
from spark_jobs.quality.expected import Expected, Frame, Severity


def own_expectations(publication: Publication) -> Iterator[Expected]:
    """The items of `quality.expectations`; `severity` is one of the arguments, as in Great Expectations (critical)."""
    of_entities = column_names(publication)
    for number, item in enumerate(publication.quality.expectations, start=1):
        # The other frames have no columns that are named after data.
        safe = of_entities if item.on == "entities" else {}
        kwargs = {name: _translated(name, value, safe) for name, value in item.kwargs.items() if name != "severity"}
        yield Expected(
            name=f"own-{number}:{item.name}",
            severity=cast("Severity", item.kwargs.get("severity", "critical")),
            on=cast("Frame", item.on),
            kind=class_name(item.name),
            kwargs=kwargs,
            description=_sentence(item.name, item.kwargs, item.where),
            where=None if item.where is None else condition(item.where, safe),
            own=True,
        )


def _translated(name: str, value: JsonValue, safe: Mapping[str, str]) -> JsonValue:
    if name not in COLUMN_ARGUMENTS:
        return value
    if isinstance(value, list):
        return [column(each, safe) if isinstance(each, str) else each for each in value]
    return column(value, safe) if isinstance(value, str) else value


def _sentence(name: str, kwargs: Mapping[str, JsonValue], where: str | None) -> str:
    arguments = ", ".join(f"{key}: {value}" for key, value in kwargs.items() if key != "severity")
    selected = f" where {where}" if where else ""
    return f"{name}({arguments}){selected}"
