"""Which expectations a publication has, as data; nothing here needs Great Expectations."""

from __future__ import annotations

from contexture.publications import Publication
from spark_jobs.quality.entity_suite import about_attributes, about_entities
from spark_jobs.quality.expected import UNIQUE, Expected
from spark_jobs.quality.own_expectations import own_expectations
from spark_jobs.quality.run_suite import about_the_run
from spark_jobs.quality.structure_suite import about_structures


def suite(publication: Publication, *, of_snapshot: bool = True, in_turn: bool = False) -> tuple[Expected, ...]:
    """All expectations of the publication, in the order in which a page shows them.

    Args:
        publication: whose.
        of_snapshot: also those about what one read found as a whole: volume, shares, age, and none twice.
        in_turn: rows were told one after the other, so that an entity or a structure may have several.
    """
    is_told_once = of_snapshot and not in_turn
    return (
        *(about_the_run(publication) if of_snapshot else ()),
        *(expected for expected in _about_rows(publication) if is_told_once or expected.kind != UNIQUE),
        *own_expectations(publication),
    )


def _about_rows(publication: Publication) -> tuple[Expected, ...]:
    if publication.source.kind == "sdmx":
        return tuple(about_structures(publication))
    return (*about_entities(publication), *about_attributes(publication))
