"""Preparing structures: what lands becomes records, quarantine and state. The tasks run in this process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders import structures
from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from builders.structure_runs import (
    NOON,
    InProcess,
    Row,
    StructurePreparer,
    only,
    registry_publication,
    upserts,
)
from contexture.errors import ConfigurationError, RetriableError
from contexture.sources.sdmx import split
from contexture.storage.manifests import RegistryPart
from spark_jobs.shared.context import StageContext
from spark_jobs.structures import prepare
from spark_jobs.structures.evaluate import unplanned_folder

A, B = urn("CL_A"), urn("CL_B")
Prepare = Callable[..., StructurePreparer]


@pytest.fixture
def preparer(tmp_path: Path) -> Prepare:
    """A new home with a registry publication, its sections replaced by what is given."""

    def make(home: str = "home", **changes: Any) -> StructurePreparer:
        return StructurePreparer(InProcess(), tmp_path / home, registry_publication(**changes))  # type: ignore[arg-type]

    return make


def lists(**codes: str) -> bytes:
    """A message of code lists CL_A and so on, each with one code."""
    return codelists(*(codelist(f"CL_{name.upper()}", "1.0", code) for name, code in codes.items()))


def test_a_flush_sends_every_structure_whole_in_one_transaction(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded(
        upserts(SEX_AND_FLOW), mode="full", complete=True, registry_transaction=41, watermark="41"
    )

    first, second = runs.records(manifest)
    assert first == {
        "position": 0,
        "topic": "structures",
        "key": SEX.encode(),
        "value": first["value"],
        "partition": None,
        "timestamp": NOON + timedelta(hours=2),
        "transaction": 0,
        "batch": 0,
        "sub_batch": 0,
        "events": 1,
        "source_transaction": 41,
        "header:contexture_registry_transaction": b"41",
    }
    assert [artefact.urn for artefact in split(BytesIO(first["value"]))] == [SEX]
    assert structures.CODELIST_2_1.encode() in first["value"]
    assert (second["position"], second["key"], second["transaction"], second["batch"]) == (1, EXR.encode(), 0, 1)
    assert (manifest.flush, manifest.baseline, manifest.watermark) == (True, False, "41")
    assert (manifest.read, manifest.accepted, manifest.upserts, manifest.deletes) == (2, 2, 2, 0)
    assert manifest.shards[0].registry == (RegistryPart(transaction=0, first_position=0, id=41, deletions=False),)
    assert (manifest.records, manifest.transactions, manifest.topics) == (2, 1, 1)
    assert manifest.shards[0].bytes == sum(len(row["key"]) + len(row["value"]) for row in (first, second))
    assert runs.held("topics", "withheld", "sequence") == {
        SEX: (["structures"], False, 1),
        EXR: (["structures"], False, 1),
    }


def test_the_log_is_published_transaction_by_transaction(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded(upserts(lists(a="x", b="x")), mode="full", complete=True, registry_transaction=5)

    manifest = runs.concluded(
        [
            *upserts(lists(a="y", c="x"), transaction=7),
            *only("delete", B, transaction=7),
            *upserts(lists(a="x"), transaction=8),
            *only("delete", urn("CL_NEVER"), transaction=9),
        ],
        watermark="9",
    )

    assert runs.sent(manifest) == [
        [("+X:CL_A(1.0)", "structures"), ("+X:CL_C(1.0)", "structures")],
        [("-X:CL_B(1.0)", "structures")],
        [("+X:CL_A(1.0)", "structures")],
    ]
    assert [
        (part.transaction, part.first_position, part.id, part.deletions) for part in manifest.shards[0].registry
    ] == [
        (0, 0, 7, False),
        (1, 2, 7, True),
        (2, 3, 8, False),
    ]
    assert [part.at for part in manifest.shards[0].registry] == [
        NOON + timedelta(minutes=7),
        NOON + timedelta(minutes=7),
        NOON + timedelta(minutes=8),
    ]
    records = runs.records(manifest)
    assert [row["header:contexture_registry_transaction"] for row in records] == [b"7", b"7", b"7", b"8"]
    assert [row["timestamp"] for row in records] == [NOON + timedelta(minutes=number) for number in (7, 7, 7, 8)]
    assert [row["batch"] for row in records] == [0, 1, 2, 3]
    assert (manifest.upserts, manifest.deletes, manifest.flush, manifest.watermark) == (3, 1, False, "9")
    assert runs.state.pointer().watermark == "9"
    assert runs.held("sequence") == {A: (2,), urn("CL_C"): (2,)}


def test_a_registry_without_a_log_is_compared_with_state(preparer: Prepare) -> None:
    runs = preparer()
    before = {f"c{number}": "x" for number in range(12)}
    runs.concluded(upserts(lists(**before)), complete=True)

    manifest = runs.concluded(upserts(lists(**{**before, "c3": "y", "d": "x"}), lists(e="x"))[1:], complete=True)

    assert runs.sent(manifest) == [
        [(f"+X:CL_{name}(1.0)", "structures") for name in ("C3", "D", "E")],
        [("-X:CL_C0(1.0)", "structures")],
    ]
    assert (manifest.accepted, manifest.unchanged, manifest.upserts, manifest.deletes) == (13, 10, 3, 1)
    assert manifest.shards[0].registry == ()
    assert runs.records(manifest)[0]["header:contexture_registry_transaction"] is None


def test_what_a_storage_does_not_list_yet_is_not_deleted(preparer: Prepare, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = preparer()
    runs.concluded(upserts(lists(a="X", b="Y")), complete=True)
    evaluated = prepare.evaluate

    def listed_late(spark: Any, preparation: StageContext, units: Any) -> None:
        evaluated(spark, preparation, units)
        unplanned_folder(preparation.work).remove("000000.parquet")

    monkeypatch.setattr(prepare, "evaluate", listed_late)
    with pytest.raises(RetriableError, match="0 of 2 landed structures are visible"):
        runs.prepare(upserts(lists(a="X", b="Y")), complete=True)


def test_an_incomplete_read_deletes_nothing(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded(upserts(lists(a="x", b="x")), complete=True)

    nothing = runs.concluded([], complete=False)
    half = runs.concluded(upserts(lists(a="x")), complete=False)

    assert (nothing.records, half.records) == (0, 0)
    assert nothing.shards[0].file is None
    assert runs.held().keys() == {A, B}


def test_more_than_may_vanish_leaves_no_outbox(preparer: Prepare) -> None:
    runs = preparer(source={"kind": "sdmx", "connection": "registry", "shrink_limit": {"share": 0.1, "count": 1}})
    runs.concluded(upserts(lists(a="x", b="x", c="x")), complete=True)

    with pytest.raises(ConfigurationError, match="2 are gone of the 3 structures"):
        runs.prepare(upserts(lists(a="x")), complete=True)
    held_up = [
        runs.storage.publication("structures").run(run).shrink_report()
        for run in runs.storage.folders("structures/runs")
    ]
    confirmed = runs.concluded(upserts(lists(a="x")), complete=True, confirm_shrink=True)

    assert [found and (found.count, found.held, found.limit, len(found.identities)) for found in held_up] == [
        (2, 3, 1, 2)
    ]
    assert len(runs.storage.publication("structures").outboxes.all()) == 2
    assert confirmed.deletes == 2


def test_a_baseline_is_state_without_records(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded(
        upserts(lists(a="x")), complete=True, registry_transaction=5, watermark="5", baseline=True
    )
    later = runs.concluded([*upserts(lists(a="x"), transaction=6), *only("delete", A, transaction=7)])

    assert (manifest.records, manifest.baseline, manifest.upserts, manifest.accepted) == (0, True, 0, 1)
    assert runs.sent(later) == [[("-X:CL_A(1.0)", "structures")]]


TWO = codelists(codelist("CL_A"), codelist("CL_B"))
WITHOUT_URN = structures.ml("2.1", ("Codelists", '<str:Codelist id="CL_A"/>')).encode()


def test_what_cannot_be_sent_goes_to_quarantine_with_its_body(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded(upserts(lists(a="x", b="x")), complete=True)
    xml = upserts(lists(a="x"))[0].media_type

    manifest = runs.concluded(
        [
            Row("upsert", A, b"<broken", xml),
            Row("upsert", B, TWO, xml),
            Row("upsert", None, WITHOUT_URN, xml),
            *only("inexpressible", urn("CL_MAP")),
            *upserts(lists(c="x"), lists(c="y"), lists(d="x")),
        ],
        complete=True,
    )

    assert runs.sent(manifest) == [[("+X:CL_D(1.0)", "structures")]]
    refused = runs.quarantine(manifest)
    assert [(row["ordinal"], row["rule"], row["severity"]) for row in refused] == [
        (0, "unreadable", "error"),
        (1, "one-structure", "error"),
        (2, "urn-missing", "error"),
        (3, "inexpressible", "warning"),
        (4, "duplicate", "error"),
        (5, "duplicate", "error"),
    ]
    assert [row["body"] for row in refused[:4]] == [b"<broken", TWO, WITHOUT_URN, None]
    assert (refused[0]["id"], refused[5]["id"]) == (A, urn("CL_C"))
    assert manifest.quarantined == {"duplicate": 2, "one-structure": 1, "unreadable": 1, "urn-missing": 1}
    assert (manifest.quarantined_entities, manifest.accepted, manifest.deletes) == (5, 1, 0)
    assert manifest.warnings["inexpressible"] == 1
    assert runs.held("withheld") == {
        A: (True,),
        B: (True,),
        urn("CL_D"): (False,),
        urn("CL_MAP"): (False,),
    }


def test_structures_go_where_routes_say(preparer: Prepare) -> None:
    routes = [{"select": "Codelist=*:*(*)", "topics": ["lists", "of-{agency}"]}]
    runs = preparer(topics={"routes": routes})

    manifest = runs.concluded(upserts(SEX_AND_FLOW), mode="full", complete=True)

    assert runs.sent(manifest) == [[("+SDMX:CL_SEX(2.1)", "lists"), ("+SDMX:CL_SEX(2.1)", "of-SDMX")]]
    assert [(row["batch"], row["sub_batch"]) for row in runs.records(manifest)] == [(0, 0), (0, 1)]
    assert len({row["value"] for row in runs.records(manifest)}) == 1
    assert manifest.warnings["unrouted"] == 1
    assert (manifest.accepted, manifest.unchanged, manifest.upserts, manifest.records) == (2, 1, 1, 2)
    assert runs.held("topics") == {SEX: (["lists", "of-SDMX"],), EXR: ([],)}
    topics = pq.read_table(runs.storage.path(runs.folder.topics(manifest.outbox)), partitioning=None).to_pylist()
    assert topics == [{"topic": "lists", "records": 1}, {"topic": "of-SDMX", "records": 1}]


def test_a_form_that_cannot_be_taken_apart_is_known_by_its_bytes(preparer: Prepare) -> None:
    runs = preparer()
    sheet = Row("upsert", A, b"PK\x03\x04 one", "application/vnd.xlsx")

    first = runs.concluded([sheet, sheet._replace(urn=B)], complete=True)
    same = runs.concluded([sheet, sheet._replace(urn=B, body=b"PK\x03\x04 two")], complete=True)

    assert [row["value"] for row in runs.records(first)] == [b"PK\x03\x04 one"] * 2
    assert runs.sent(same) == [[("+X:CL_B(1.0)", "structures")]]
    assert runs.evaluated("run2")[1]["agency"] == "X"


def test_the_key_is_the_urn_that_landed(preparer: Prepare) -> None:
    runs = preparer()
    (row,) = upserts(lists(a="x"))

    manifest = runs.concluded([row._replace(urn=B)], complete=True)

    assert [record["key"].decode() for record in runs.records(manifest)] == [B]


def test_the_checkpoint_gets_a_row_for_each_landing_row(preparer: Prepare) -> None:
    runs = preparer()

    runs.prepare([*upserts(SEX_AND_FLOW, transaction=3), *only("delete", A, transaction=3)])

    flow = runs.evaluated("run1")[1]
    (artefact,) = split(BytesIO(upserts(SEX_AND_FLOW)[1].body or b""))
    assert [row["verdict"] for row in runs.evaluated("run1")] == [0, 0, 4]
    assert flow == {
        "event": 1,
        "operation": "upsert",
        "verdict": 0,
        "urn": EXR,
        "declared_urn": None,
        "kind": "Dataflow",
        "agency": "ECB",
        "id": "EXR",
        "version": "1.0",
        "source_transaction": 3,
        "size": len(artefact.message()),
        "content_hash": artefact.content_hash,
        "topics": ["structures"],
        "references": ["urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=ECB:ECB_EXR1(2.0)"],
        "reference_count": 1,
        "is_final": False,
        "rules": None,
        "warnings": flow["warnings"],
        "media_type": "application/vnd.sdmx.structure+xml;version=2.1",
        "transcoded_from": None,
        "lost": None,
        "modified_at": NOON + timedelta(minutes=3),
        "received_at": NOON + timedelta(hours=2),
    }


def digests(runs: StructurePreparer, *folders: str) -> dict[str, str]:
    """Every file below these folders."""
    roots = [Path(runs.storage.path(folder)) for folder in folders]
    return {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest()
        for root in roots
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "status.json"
    }


def test_preparing_again_gives_the_same_bytes(preparer: Prepare) -> None:
    runs = preparer()
    rows = [*upserts(SEX_AND_FLOW, transaction=3), *only("inexpressible", A, transaction=3)]
    first = runs.prepare(rows, rows_in_group=1)
    folders = (runs.folder.outbox(first.outbox), runs.folder.quarantine(first.outbox))
    before = digests(runs, *folders)
    runs.storage.remove(runs.folder.manifest(first.outbox))

    again = runs.again("run1")

    assert again == first
    assert digests(runs, *folders) == before
    assert len(before) == 5


def test_an_outbox_that_is_there_is_not_made_again(preparer: Prepare) -> None:
    runs = preparer()
    first = runs.prepare(upserts(SEX_AND_FLOW))
    runs.storage.remove(runs.folder.landing("run1") + "/part-00000.parquet")

    assert runs.again("run1") == first


def test_whether_a_landing_is_whole_makes_another_outbox(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded(upserts(lists(a="x")), complete=True)
    rows = upserts(lists(b="x"))

    part = runs.prepare(rows, complete=False)
    runs.runs -= 1
    whole = runs.prepare(rows, complete=True)

    assert part.outbox != whole.outbox
    assert whole.deletes == 1
