"""The pull of structures from the test registry over HTTP, with a real Spark session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders import registrations
from builders.layout import PublicationPaths
from builders.registrations import registration, submission
from builders.registry import SEX, codelist, codelists, urn
from builders.states import Held, write_files
from builders.structure_reading import structure_order
from builders.structures import CODELIST_JSON, sdmx_json
from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.sdmx import Format, split
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.home import Home
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import LANDING
from contexture_sandbox.registry import TestRegistry, seed_codelist, seed_message
from spark_jobs.structures.read import read_structures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

A, B, C = urn("A"), urn("B"), urn("C")
STRUCTURES = "/sdmx/v2/structure"
SECRET = "bearer-8f3a51"


@pytest.fixture
def registry() -> Iterator[TestRegistry]:
    with TestRegistry() as started:
        yield started


@pytest.fixture
def plain() -> Iterator[TestRegistry]:
    with TestRegistry("plain") as started:
        yield started


def three(*, codes: str = "M") -> bytes:
    return codelists(*(codelist(name, "1.0", codes) for name in ("A", "B", "C")))


def sent(home: Path, urns: Iterable[str]) -> None:
    state = Home(str(home)).publication("codes").state
    state.commit(write_files(state, [Held(each) for each in urns]))


def pulled(
    spark: SparkSession, registry: TestRegistry, asked: StageOrder, watermark: str | None = None, *, root: str = ""
) -> LandingManifest:
    connection = RegistryConnection(f"{registry.url}{root}", headers={"x-key": SECRET})
    return read_structures(spark, asked, connection, watermark)


def rows(home: Path, manifest: LandingManifest) -> list[dict[str, Any]]:
    folder = home / PublicationPaths("codes").landing(manifest.run)
    tables = [pq.read_table(folder / name) for name in sorted(manifest.files)]
    landed: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("ordinal").to_pylist()
    return landed


def landed_changes(home: Path, manifest: LandingManifest) -> list[tuple[int | None, str, str]]:
    return [(row["source_transaction"], row["operation"], row["id"]) for row in rows(home, manifest)]


def test_a_full_pull_lands_everything_between_two_healthy_probes(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path
) -> None:
    registry.submit(seed_message(40))

    manifest = pulled(spark, registry, structure_order(tmp_path))

    landed = rows(tmp_path, manifest)
    assert sorted(row["id"] for row in landed) == sorted(registry.store.current())
    assert len({row["ordinal"] for row in landed}) == 40
    for row in landed:
        [artefact] = split(BytesIO(row["body"]), row["media_type"])
        assert artefact.content_hash == registry.store.current()[row["id"]].first.content_hash
    assert (manifest.rows, manifest.source_count, manifest.complete) == (40, 40, True)
    assert (manifest.watermark_to, manifest.registry_transaction) == ("1", 1)
    probes = [place for place, each in enumerate(registry.requests) if each.path == "/ws/fusion/info/product"]
    bodies = [place for place, each in enumerate(registry.requests) if "Codelist" in each.path.title()]
    assert probes[0] < bodies[0]
    assert probes[-1] > bodies[-1]


def test_landing_has_the_types_that_everything_after_it_expects(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path
) -> None:
    registry.submit(three())

    manifest = pulled(spark, registry, structure_order(tmp_path))

    folder = tmp_path / PublicationPaths("codes").landing("r1")
    assert {str(pq.read_schema(folder / name)) for name in manifest.files} == {str(LANDING)}
    assert SECRET.encode() not in b"".join((folder / name).read_bytes() for name in [*manifest.files, "manifest.json"])


def test_only_what_is_selected_is_landed(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(codelists(*(codelist("A", version) for version in ("1.0", "1.1", "2.0")), codelist("B")))

    manifest = pulled(spark, registry, structure_order(tmp_path, select=["Codelist=X:*(~)"]))

    assert landed_changes(tmp_path, manifest) == [(None, "upsert", urn("A", "2.0")), (None, "upsert", B)]
    assert manifest.source_count == 2


def test_a_registry_without_a_log_is_read_whole(spark: SparkSession, plain: TestRegistry, tmp_path: Path) -> None:
    plain.submit(three())
    sent(tmp_path, [A, B, urn("GONE")])

    manifest = pulled(spark, plain, structure_order(tmp_path, mode="changes"), root="/rest")

    assert [row[2] for row in landed_changes(tmp_path, manifest)] == [A, B, C]
    assert (manifest.complete, manifest.watermark_to, manifest.registry_transaction) == (True, None, None)


def test_data_registrations_are_landed_with_structures_and_by_the_log(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path
) -> None:
    one, two = registrations.urn("exr-1"), registrations.urn("exr-2")
    registry.submit(three())
    registry.submit(submission(registration("exr-1"), registration("exr-2")))

    full = pulled(spark, registry, structure_order(tmp_path, registrations=True))
    registry.store.clock.advance(600)
    registry.submit(submission(registration("exr-1", "https://example.org/moved")))
    registry.delete([two])
    sent(tmp_path, [A, B, C, one, two])
    registry.store.clock.advance(600)
    asked = structure_order(tmp_path, run="r2", mode="changes", registrations=True)
    changes = pulled(spark, registry, asked, full.watermark_to)

    assert sorted(row["id"] for row in rows(tmp_path, full)) == sorted([A, B, C, one, two])
    assert {row["media_type"] for row in rows(tmp_path, full) if row["type"] == "Registration"} == {
        "application/vnd.sdmx.registry+xml;version=2.1"
    }
    assert (full.source_count, changes.watermark_to, changes.complete) == (5, "4", False)
    assert landed_changes(tmp_path, changes) == [(4, "upsert", one), (4, "delete", two)]


def test_what_the_registry_does_not_write_in_the_form_is_landed_as_it_writes_it(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path
) -> None:
    registry.submit(three(codes="first"))
    sent(tmp_path, [A, B, C])
    for name in "AB":
        registry.store.clock.advance(60)
        registry.submit(codelists(codelist(name, "1.0", "second")))
    registry.store.clock.advance(60)
    registry.delete([B])
    lossy = {"allow_lossy": True, "media_type": Format.SDMX_JSON_2_0.media_type}

    full = pulled(spark, registry, structure_order(tmp_path, **lossy))
    changes = pulled(spark, registry, structure_order(tmp_path, run="r2", mode="changes", **lossy), "1")

    assert landed_changes(tmp_path, full) == [(None, "upsert", A), (None, "upsert", C)]
    assert landed_changes(tmp_path, changes) == [(2, "upsert", A), (3, "upsert", B), (4, "delete", B)]
    bodies = [row for manifest in (full, changes) for row in rows(tmp_path, manifest) if row["body"]]
    assert {row["media_type"] for row in bodies} == {Format.SDMX_ML_2_1.media_type}


def test_changes_land_each_transaction_with_the_content_of_its_time(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path
) -> None:
    registry.submit(three())
    sent(tmp_path, [A, B, C])
    for code in ("second", "third"):
        registry.store.clock.advance(60)
        registry.submit(codelists(codelist("A", "1.0", code)))
    registry.store.clock.advance(60)
    registry.delete([B])

    manifest = pulled(spark, registry, structure_order(tmp_path, mode="changes"), "1")

    assert landed_changes(tmp_path, manifest) == [(2, "upsert", A), (3, "upsert", A), (4, "delete", B)]
    landed = rows(tmp_path, manifest)
    assert b"second" in landed[0]["body"]
    assert b"third" in landed[1]["body"]
    assert (manifest.complete, manifest.watermark_to, manifest.registry_transaction) == (False, "4", 4)
    assert manifest.source_count == 2


def test_nothing_new_is_an_empty_landing(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(three())
    sent(tmp_path, [A, B, C])

    manifest = pulled(spark, registry, structure_order(tmp_path, mode="changes"), "1")

    assert (manifest.rows, manifest.complete, manifest.watermark_to) == (0, False, "1")
    assert manifest.source_count == 3


def test_a_gap_in_the_log_is_caught_up_with(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(three())
    sent(tmp_path, [A, B, C])
    registry.store.clock.advance(60)
    registry.submit(codelists(codelist("A", "1.0", "lost"), codelist("D", "1.0")))
    registry.delete([B])
    registry.store.clock.advance(3 * 86_400)
    registry.submit(codelists(codelist("C", "1.0", "logged")))

    manifest = pulled(spark, registry, structure_order(tmp_path, mode="changes"), "1")

    assert landed_changes(tmp_path, manifest) == [
        (3, "upsert", A),
        (3, "upsert", urn("D")),
        (4, "upsert", C),
    ]
    assert (manifest.watermark_to, manifest.complete) == ("4", True)


def test_a_registry_that_notes_its_last_change_is_not_read_when_there_was_none(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path
) -> None:
    registry.store.clock.advance(-3_600)
    registry.submit(three())
    registry.store.clock.advance(3_600)
    sent(tmp_path, [A, B, C])
    asked = [structure_order(tmp_path, run=run, mode="changes", flavour="generic") for run in ("r1", "r2")]

    first = pulled(spark, registry, asked[0], root="/sdmx/v2")
    again = pulled(spark, registry, asked[1], first.watermark_to, root="/sdmx/v2")

    assert first.complete
    assert first.watermark_to is not None
    assert (again.rows, again.complete, again.watermark_to) == (0, False, first.watermark_to)


def test_what_a_format_can_not_express_is_listed(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(three())
    registry.submit(sdmx_json("2.0", {"codelists": [CODELIST_JSON]}).encode())

    manifest = pulled(spark, registry, structure_order(tmp_path))

    assert landed_changes(tmp_path, manifest) == [
        (None, "upsert", A),
        (None, "upsert", B),
        (None, "upsert", C),
        (None, "inexpressible", SEX),
    ]
    assert (manifest.complete, manifest.source_count) == (True, 4)


def test_a_pull_with_a_manifest_is_not_read_again(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(three())
    first = pulled(spark, registry, structure_order(tmp_path))
    registry.stop()

    assert pulled(spark, registry, structure_order(tmp_path)) == first


def test_what_a_killed_pull_left_is_removed_first(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(three())
    folder = PublicationPaths("codes").landing("r1")
    Home(str(tmp_path)).write(f"{folder}/part-00007.parquet", b"half")

    manifest = pulled(spark, registry, structure_order(tmp_path))

    assert Home(str(tmp_path)).files(folder, ".parquet") == sorted(manifest.files)


def test_a_structure_of_many_megabytes_is_landed(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(seed_codelist(1, codes=200_000))

    manifest = pulled(spark, registry, structure_order(tmp_path))

    [row] = rows(tmp_path, manifest)
    assert len(row["body"]) > 15_000_000
    assert manifest.complete


def fails(registry: TestRegistry, path: str) -> None:
    registry.faults.fail(times=None, path=path)


def breaks_off(registry: TestRegistry, path: str) -> None:
    registry.faults.truncate(times=None, path=path)


def is_empty(registry: TestRegistry, path: str) -> None:
    registry.faults.empty(times=None, path=path)


def is_half(registry: TestRegistry, path: str) -> None:
    registry.faults.half(times=None, path=path)


@pytest.mark.parametrize(
    ("face", "disturb", "known"),
    [
        ("fmr", fails, True),
        ("plain", breaks_off, True),
        *((face, disturb, known) for face in ("fmr", "plain") for disturb in (is_empty, is_half) for known in (0, 1)),
    ],
)
def test_a_registry_that_lies_for_good_is_never_believed(
    spark: SparkSession, face: Any, disturb: Callable[[TestRegistry, str], None], tmp_path: Path, *, known: bool
) -> None:
    with TestRegistry(face) as started:
        started.submit(three())
        sent(tmp_path, [A, B, C] if known else [])
        disturb(started, STRUCTURES if face == "fmr" else "/rest")

        with pytest.raises((RetriableError, ConfigurationError)):
            pulled(spark, started, structure_order(tmp_path), root="" if face == "fmr" else "/rest")

    assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.parametrize("nth", [1, 2, 3, 5])
@pytest.mark.parametrize("fault", ["empty", "half"])
def test_one_answer_that_is_empty_or_half_loses_nothing(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path, fault: str, nth: int
) -> None:
    registry.submit(seed_message(10))
    sent(tmp_path, registry.store.current())
    getattr(registry.faults, fault)(nth=nth, path=STRUCTURES)

    try:
        manifest = pulled(spark, registry, structure_order(tmp_path))
    except RetriableError:
        assert not list(tmp_path.rglob("manifest.json"))
    else:
        assert sorted(row["id"] for row in rows(tmp_path, manifest)) == sorted(registry.store.current())


def test_a_registry_that_is_slow_is_waited_for(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(three())
    registry.faults.delay(0.3, times=None, path=STRUCTURES)

    assert pulled(spark, registry, structure_order(tmp_path)).complete


def test_a_failure_that_passes_is_not_noticed(spark: SparkSession, registry: TestRegistry, tmp_path: Path) -> None:
    registry.submit(three())
    registry.faults.fail(times=1, nth=2, path=STRUCTURES)

    assert pulled(spark, registry, structure_order(tmp_path)).complete


def test_a_backfill_lands_what_the_log_contains_of_its_interval_as_it_was_then(
    spark: SparkSession, registry: TestRegistry, tmp_path: Path
) -> None:
    start = datetime.now(UTC).replace(microsecond=0)
    for minutes, message in enumerate(
        [three(), codelists(codelist("A", "1.0", "F")), codelists(codelist("A", "1.0", "T"))]
    ):
        registry.store.clock.freeze(start + timedelta(minutes=minutes))
        registry.submit(message)
    asked = structure_order(tmp_path, mode="backfill").model_copy(
        update={"interval": (start + timedelta(minutes=1), start + timedelta(minutes=2))}
    )

    manifest = pulled(spark, registry, asked)

    assert landed_changes(tmp_path, manifest) == [(2, "upsert", A)]
    assert b'id="F"' in rows(tmp_path, manifest)[0]["body"]
    assert (manifest.missing, manifest.complete, manifest.watermark_to) == ((), False, None)
    assert (manifest.started_at, manifest.finished_at) == asked.interval
    assert json.loads((tmp_path / PublicationPaths("codes").landing_before("r1")).read_bytes()) == [A, B, C]
    registry.stop()
    assert pulled(spark, registry, asked) == manifest
