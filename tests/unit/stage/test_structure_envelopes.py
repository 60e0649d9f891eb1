"""Structures in envelopes, from their landing to the records of an outbox. The tasks run in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from builders.structure_runs import InProcess, Row, StructurePreparer, only, registry_publication, upserts
from contexture.records.cloudevents import decode
from contexture.storage.manifests import Manifest

A = urn("CL_A")
KINDS = ("binary", "structured")
Prepare = Callable[..., StructurePreparer]


@pytest.fixture
def preparer(tmp_path: Path) -> Prepare:
    """A new home with a registry publication in an envelope."""

    def make(kind: str, **changes: Any) -> StructurePreparer:
        sections = {"message": {"envelope": f"cloudevents-{kind}"}, **changes}
        return StructurePreparer(InProcess(), tmp_path / kind, registry_publication(**sections))  # type: ignore[arg-type]

    return make


def events(runs: StructurePreparer, manifest: Manifest) -> list[dict[str, Any]]:
    """What consumers read, in order."""
    return [decode(headers(manifest, row), row["key"], row["value"]) for row in runs.records(manifest)]


def headers(manifest: Manifest, row: dict[str, Any]) -> list[tuple[str, bytes]]:
    """The headers of a record as the sender gives them."""
    varying = [(name.removeprefix("header:"), value) for name, value in row.items() if name.startswith("header:")]
    constant = [(name, value.encode()) for name, value in manifest.headers]
    return [*constant, *((name, value) for name, value in varying if value is not None)]


def lists(**codes: str) -> bytes:
    """A message of code lists CL_A and so on, each with one code."""
    return codelists(*(codelist(f"CL_{name.upper()}", "1.0", code) for name, code in codes.items()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_structure_is_an_event_that_holds_it_whole(preparer: Prepare, kind: str) -> None:
    runs = preparer(kind)
    rows = upserts(SEX_AND_FLOW, transaction=41)

    manifest = runs.concluded(rows, registry_transaction=41)

    sex, flow = events(runs, manifest)
    assert (sex["subject"], flow["subject"]) == (SEX, EXR)
    assert sex["data"].encode() == rows[0].body
    assert sex["time"] == "2026-11-01T12:41:00Z"
    assert sex["datacontenttype"] == "application/vnd.sdmx.structure+xml;version=2.1"
    assert sex["type"] == "contexture.sdmx.structure.upsert"
    records = runs.records(manifest)
    assert [row["header:contexture_registry_transaction"] for row in records] == [b"41", b"41"]
    assert manifest.shards[0].bytes == sum(len(row["key"]) + len(row["value"]) for row in records)


@pytest.mark.parametrize("kind", KINDS)
def test_a_deletion_is_a_tombstone_with_its_attributes_in_headers(preparer: Prepare, kind: str) -> None:
    runs = preparer(kind)
    runs.concluded(upserts(lists(a="x", b="x"), transaction=5), registry_transaction=5)

    log = runs.concluded([*upserts(lists(a="y"), transaction=6), *only("delete", A, transaction=7)])

    [changed, gone] = events(runs, log)
    assert runs.records(log)[1]["value"] is None
    assert (changed["type"], gone["type"]) == (
        "contexture.sdmx.structure.upsert",
        "contexture.sdmx.structure.delete",
    )
    assert (gone["subject"], gone["time"]) == (A, "2026-11-01T12:07:00Z")
    assert "data" not in gone


def test_both_modes_give_the_same_ids_and_preparing_again_gives_them_again(preparer: Prepare) -> None:
    ids: dict[str, list[str]] = {}
    for kind in KINDS:
        runs = preparer(kind)
        runs.concluded(upserts(lists(a="x", b="x")), complete=True, mode="full")
        manifest = runs.prepare(upserts(lists(a="y")), complete=True)
        ids[kind] = [event["id"] for event in events(runs, manifest)]
        runs.storage.remove(runs.folder.manifest(manifest.outbox))
        runs.again("run2")
        assert [event["id"] for event in events(runs, manifest)] == ids[kind]

    assert ids["binary"] == ids["structured"]
    assert len(set(ids["binary"])) == 2


def coming_and_going(runs: StructurePreparer, transactions: Sequence[int | None]) -> list[str]:
    """Ids of the same content that comes, goes, comes and goes."""
    found: list[str] = []
    for place, number in enumerate(transactions):
        rows = only("delete", A, transaction=number) if place % 2 else upserts(lists(a="x"), transaction=number)
        found += [event["id"] for event in events(runs, runs.concluded(rows))]
    return found


def test_content_that_comes_back_has_another_id(preparer: Prepare) -> None:
    assert len(set(coming_and_going(preparer("binary"), (5, 6, 7, 8)))) == 4


def test_the_end_of_content_that_came_back_has_another_id_without_a_log_too(preparer: Prepare) -> None:
    _, ended, _, ended_again = coming_and_going(preparer("structured"), (None,) * 4)

    assert ended != ended_again


def test_leaving_a_topic_and_the_end_in_the_other_are_two_events(preparer: Prepare) -> None:
    routes = [{"select": "Codelist=X:CL_A(~)", "topics": ["latest"]}, {"select": "*", "topics": ["all"]}]
    runs = preparer("binary", topics={"routes": routes})
    older, newer = (codelists(codelist("CL_A", version)) for version in ("1.0", "2.0"))
    runs.concluded(upserts(older), complete=True)

    left = runs.concluded(upserts(older, newer), complete=True)
    ended = runs.concluded(upserts(newer), complete=True, confirm_shrink=True)

    assert [shown for transaction in runs.sent(left) for shown in transaction][-1] == ("-X:CL_A(1.0)", "latest")
    assert runs.sent(ended) == [[("-X:CL_A(1.0)", "all")]]
    assert events(runs, left)[-1]["id"] != events(runs, ended)[0]["id"]


def test_one_event_goes_to_all_of_its_topics(preparer: Prepare) -> None:
    runs = preparer("structured", topics={"topics": ["one", "two"]})

    one, two = events(runs, runs.concluded(upserts(lists(a="x"))))

    assert one == two


def test_what_cannot_be_split_is_sent_as_base64(preparer: Prepare) -> None:
    runs = preparer("structured")
    sheet = Row("upsert", A, b"PK\x03\x04 one", "application/vnd.xlsx")

    manifest = runs.concluded([sheet], complete=True)

    [record] = runs.records(manifest)
    assert orjson.loads(record["value"])["data_base64"] == "UEsDBCBvbmU="
    assert orjson.loads(record["value"])["datacontenttype"] == "application/vnd.xlsx"


def test_what_no_event_can_carry_goes_to_quarantine(preparer: Prepare) -> None:
    odd = f"{A}\u0085"
    for kind in KINDS:
        runs = preparer(kind, quality={"rules": {"identity": "off"}})
        (row,) = upserts(lists(a="x"))

        manifest = runs.concluded([row._replace(urn=odd), *upserts(lists(b="x"))], complete=True)

        assert [each["rule"] for each in runs.quarantine(manifest)] == ["identity"]
        assert [event["subject"] for event in events(runs, manifest)] == [urn("CL_B")]


def test_what_was_sent_before_there_was_an_envelope_is_deleted(preparer: Prepare) -> None:
    runs = preparer("binary")
    bare = registry_publication()
    runs.publication, wrapped = bare, runs.publication
    runs.concluded(upserts(lists(a="x", b="x")), complete=True)

    runs.publication = wrapped
    manifest = runs.concluded(upserts(lists(b="x")), complete=True)

    [gone] = events(runs, manifest)
    assert (gone["type"], gone["subject"]) == ("contexture.sdmx.structure.delete", A)
