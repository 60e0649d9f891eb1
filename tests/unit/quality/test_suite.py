from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from contexture.publications import Publication
from spark_jobs.quality.suite import suite
from spark_jobs.quality.summary import RunSummary, StructureSummary

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def vehicles(types: tuple[str, ...] = (), **quality: object) -> Publication:
    source = {"kind": "ngsi", "connection": "context_broker", "service": "vehicles", "types": types}
    return Publication.model_validate({"name": "vehicles", "source": source, "quality": quality})


def test_a_publication_that_says_nothing_has_the_expectations_that_always_hold() -> None:
    assert [expected.name for expected in suite(vehicles())] == [
        "volume",
        "quarantined-share",
        "count-zero",
        "unique-identity",
        "id-present",
        "type-present",
        "service-path",
        "topic-name",
        "not-in-the-future",
    ]


def test_an_error_of_the_whole_snapshot_rejects_the_run() -> None:
    rules = {"dup-across-paths": "error", "count-zero": "off", "type-drift": "warning"}
    expected = {each.name: (each.severity, each.kwargs) for each in suite(vehicles(rules=rules))}
    assert expected["dup-across-paths"] == ("critical", {"column": "dup-across-paths", "max_value": 0})
    assert not {"count-zero", "type-drift"} & set(expected)


def test_what_a_publication_says_is_expected_of_the_column_of_its_attribute() -> None:
    publication = vehicles(("car",), attribute_types={"no2-mg": "Number"}, ranges={"speed": {"maximum": 300}})
    by_name = {expected.name: expected.kwargs for expected in suite(publication)}
    assert by_name["known-type"] == {"column": "type", "value_set": ["car"]}
    assert by_name["attribute-type:no2-mg"] == {"column": "type_no2_mg_d14b638cff", "value_set": ["Number"]}
    assert by_name["range:speed"] == {"column": "value_speed", "max_value": 300}


@pytest.mark.parametrize(
    ("quality", "sentence"),
    [
        ({}, "the number of entities in the source is at least 1"),
        ({"minimum_entities": 5, "maximum_entities": 9}, "the number of entities in the source is between 5 and 9"),
    ],
)
def test_sentences_say_limits_as_people_do(quality: dict[str, object], sentence: str) -> None:
    assert suite(vehicles(**quality))[0].description == sentence


@pytest.mark.parametrize(("minimum", "severity"), [(None, "warning"), (1, "warning"), (2, "critical")])
def test_an_empty_source_that_never_had_anything_is_a_warning_unless_the_publication_says_more(
    minimum: int | None, severity: str
) -> None:
    quality = {} if minimum is None else {"minimum_entities": minimum}
    (volume, *others) = suite(vehicles(**quality), nothing_yet=True)
    assert (volume.name, volume.severity, others) == ("volume", severity, list(suite(vehicles(**quality))[1:]))


@pytest.mark.parametrize(
    ("never_read", "in_source", "read", "nothing"),
    [
        (True, 0, 0, True),
        (False, 0, 0, False),
        (True, None, 0, False),
        (True, 1, 0, False),
        (True, 0, 1, False),
    ],
)
def test_there_is_nothing_yet_where_nothing_is_counted_read_or_known(
    never_read: bool, in_source: int | None, read: int, nothing: bool
) -> None:
    summary = RunSummary(
        read=read,
        accepted=0,
        quarantined=0,
        in_source=in_source,
        unchanged=0,
        newest_modified_at=None,
        reference_time=NOON,
        never_read=never_read,
    )
    assert summary.is_nothing_yet is nothing


@pytest.mark.parametrize(
    ("read", "quarantined", "in_source", "share"),
    [(10, 1, 200, 0.005), (10, 1, None, 0.1), (0, 0, 0, 0.0), (0, 0, None, 0.0), (4, 4, 2, 1.0)],
)
def test_the_quarantined_share_is_of_the_source_or_else_of_what_was_read(
    read: int, quarantined: int, in_source: int | None, share: float
) -> None:
    summary = RunSummary(
        read=read,
        accepted=0,
        quarantined=quarantined,
        in_source=in_source,
        unchanged=0,
        newest_modified_at=None,
        reference_time=NOON,
    )
    assert summary.quarantined_share == share


def test_a_time_without_a_zone_is_local_as_spark_collects_it() -> None:
    collected = datetime(2026, 3, 1, 11, 59, tzinfo=UTC).astimezone().replace(tzinfo=None)
    summary = RunSummary(
        read=1,
        accepted=1,
        quarantined=0,
        in_source=1,
        unchanged=0,
        newest_modified_at=collected,
        reference_time=NOON,
    )
    assert summary.newest_age_seconds == 60.0


def test_what_kind_of_source_it_is_decides_what_the_counts_are_of() -> None:
    counts = {"read": 4, "accepted": 3, "quarantined": 1, "in_source": 4, "unchanged": 0, "newest_modified_at": None}
    of_entities = RunSummary(**counts, reference_time=NOON)  # type: ignore[arg-type]
    assert of_entities.observed("quarantined_share") == "1 of 4 entities (25.00%)"
    of_structures = StructureSummary(**counts, reference_time=NOON)  # type: ignore[arg-type]
    assert of_structures.observed("quarantined_share") == "1 of 4 structures (25.00%)"


@pytest.mark.slow
def test_naming_columns_and_expectations_imports_neither_spark_nor_great_expectations() -> None:
    code = (
        "import sys, spark_jobs.quality, spark_jobs.quality.columns, spark_jobs.quality.suite, "
        "spark_jobs.quality.summary, spark_jobs.quality.report; "
        "print(sorted({'pyspark', 'great_expectations'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_root())
    assert shown.stdout.strip() == "[]"


def _root() -> str:
    import spark_jobs

    return str(spark_jobs.__path__[0]).removesuffix("/spark_jobs")
