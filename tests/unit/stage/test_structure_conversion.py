"""Structures that a registry does not write in the wanted format are read in another one, and converted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from builders.registry import urn
from builders.structure_reading import landed, landed_changes, read_context
from builders.structure_runs import InProcess, StructurePreparer, registry_publication, upserts
from builders.transcoding import FREQUENCIES, LOST, MAPPINGS, message
from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.sdmx import Format
from fakes.structure_registry import FakeRegistry
from spark_jobs.structures.read_snapshot import land_snapshot

JSON = Format.SDMX_JSON_2_0.media_type
ML = Format.SDMX_ML_2_1.media_type
A, B = urn("A"), urn("B")
FREQ = urn("CL_FREQ")


def read(registry: FakeRegistry, home: Path, **fields: Any) -> None:
    context = read_context(registry, home, media_type=JSON, **fields)
    land_snapshot(context, context.list_structures())
    context.close()


@pytest.fixture
def registry() -> FakeRegistry:
    """It writes SDMX-ML 2.1 alone."""
    held = FakeRegistry()
    held.submit({A: ("M",), B: ("F",)})
    held.forms = {ML}
    return held


@pytest.mark.parametrize("insists", [False, True])
def test_what_is_not_written_in_the_form_is_landed_in_another(
    registry: FakeRegistry, tmp_path: Path, insists: bool
) -> None:
    registry.insists = insists

    read(registry, tmp_path, others=(ML,), target=Format.SDMX_JSON_2_0)

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", B)]
    assert {row["media_type"] for row in landed(tmp_path)} == {ML}


def test_one_structure_that_is_not_expressible_is_landed_in_another_form(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.forms, registry.withheld = {ML, JSON}, {B}
    registry.too_large = True
    registry.inexpressible_in = {JSON: {B}}

    read(registry, tmp_path, others=(ML,), target=Format.SDMX_JSON_2_0)

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "upsert", B)]


def test_without_another_form_it_is_marked_as_before(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.forms, registry.inexpressible_in = {ML, JSON}, {JSON: {B}}
    registry.too_large = True

    read(registry, tmp_path)

    assert landed_changes(tmp_path) == [(None, "upsert", A), (None, "inexpressible", B)]


def test_a_form_that_nothing_is_written_in_fails_the_run_as_before(registry: FakeRegistry, tmp_path: Path) -> None:
    with pytest.raises(RetriableError, match="does not give when asked for it alone"):
        read(registry, tmp_path)


def test_what_is_gone_in_the_form_that_is_wanted_is_not_looked_for_in_others(
    registry: FakeRegistry, tmp_path: Path
) -> None:
    registry.forms = None
    registry.submit(delete=[B])

    read(registry, tmp_path, others=(ML,), target=Format.SDMX_JSON_2_0, sent=[A, B])

    assert registry.asked.count(B) == 2


Prepare = Callable[..., StructurePreparer]


@pytest.fixture
def preparer(tmp_path: Path) -> Prepare:
    """Runs of a publication in SDMX-JSON 2.0 that allows conversions."""

    def make(**rules: str) -> StructurePreparer:
        publication = registry_publication(
            source={"kind": "sdmx", "connection": "registry", "media_type": JSON},
            message={"allow_lossy": True},
            quality={"rules": rules},
        )
        return StructurePreparer(InProcess(), tmp_path / "home", publication)  # type: ignore[arg-type]

    return make


SOURCE = message(("Codelists", FREQUENCIES), ("StructureSets", MAPPINGS))


def test_structures_are_sent_in_the_form_with_what_was_lost_in_headers(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded(upserts(SOURCE), mode="full", complete=True)

    (record,) = runs.records(manifest)
    assert record["key"] == FREQ.encode()
    assert orjson.loads(record["value"])["data"]["codelists"][0]["id"] == "CL_FREQ"
    assert record["header:contexture_transcoded_from"] == ML.encode()
    assert record["header:contexture_transcoding_lost"] == LOST.encode()


def test_conversions_are_counted_and_listed(preparer: Prepare, caplog: pytest.LogCaptureFixture) -> None:
    runs = preparer()

    with caplog.at_level(logging.WARNING):
        manifest = runs.concluded(upserts(SOURCE), mode="full", complete=True)

    assert (manifest.transcoded, manifest.warnings) == (1, {"inexpressible": 1, "transcoding-loss": 1})
    listed = pq.read_table(runs.storage.path(runs.folder.transcoded(manifest.outbox))).to_pylist()
    assert listed == [{"urn": FREQ, "transcoded_from": ML, "media_type": JSON, "lost": LOST}]
    assert f"{FREQ} was converted from {ML}, without {LOST}" in caplog.messages


def test_what_can_not_be_converted_gives_no_event_and_is_listed(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded(upserts(SOURCE), mode="full", complete=True)

    (refused,) = runs.quarantine(manifest)
    assert (refused["rule"], refused["severity"]) == ("inexpressible", "warning")
    assert refused["message"].startswith("urn:sdmx:org.sdmx.infomodel.mapping.StructureSet=X:MAPS(1.0) cannot be")
    assert runs.evaluated("run1")[1]["operation"] == "inexpressible"


def test_what_would_lose_something_is_held_back_where_the_rule_is_an_error(preparer: Prepare) -> None:
    runs = preparer(**{"transcoding-loss": "error"})

    manifest = runs.concluded(upserts(message(("Codelists", FREQUENCIES))), mode="full", complete=True)

    (refused,) = runs.quarantine(manifest)
    assert manifest.records == 0
    assert (refused["rule"], refused["body"]) == (
        "transcoding-loss",
        upserts(message(("Codelists", FREQUENCIES)))[0].body,
    )
    assert refused["message"] == f"converted from SDMX-ML 2.1, without {LOST}"


def test_a_structure_that_is_the_same_as_converted_is_not_sent_again(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded(upserts(message(("Codelists", FREQUENCIES))), complete=True)
    in_french = FREQUENCIES.replace(">Annuel<", ">Annuelle<")

    again = runs.concluded(upserts(message(("Codelists", in_french))), complete=True)

    assert (again.records, again.unchanged, again.transcoded) == (0, 1, 1)


def test_preparing_again_gives_the_same_bytes(preparer: Prepare) -> None:
    runs = preparer()
    first = runs.prepare(upserts(SOURCE), mode="full", complete=True)
    digest = first.shards[0].sha256
    runs.storage.remove(runs.folder.outbox(first.outbox))

    assert runs.again("run1", mode="full").shards[0].sha256 == digest


def test_what_the_registry_writes_in_the_form_is_left_as_it_is(preparer: Prepare) -> None:
    runs = preparer()
    written = (
        b'{"meta":{"schema":"https://json.sdmx.org/2.0.0/sdmx-json-structure-schema.json"},"data":{"codelists":[%s]}}'
    )
    body = written % b'{"id":"A","agencyID":"X","version":"1.0","name":"A"}'

    manifest = runs.concluded(upserts(body), complete=True)

    (record,) = runs.records(manifest)
    assert record["value"] == upserts(body)[0].body
    assert record["header:contexture_transcoded_from"] is None
    assert manifest.transcoded == 0


def test_a_form_that_nothing_is_offered_in_fails_the_run(registry: FakeRegistry, tmp_path: Path) -> None:
    registry.insists = True

    with pytest.raises(ConfigurationError, match="answers with something else"):
        read(registry, tmp_path)
