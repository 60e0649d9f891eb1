"""`message.bundle: transaction`: what a transaction adds and changes is one message in one record."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from builders.registry import EXR, SEX, SEX_AND_FLOW, codelist, codelists, urn
from builders.structure_runs import InProcess, StructurePreparer, only, registry_publication, upserts
from contexture.errors import ConfigurationError
from contexture.sources.sdmx import split
from contexture.storage.manifests import RegistryPart

A, B, C = urn("CL_A"), urn("CL_B"), urn("CL_C")
HISTORY = {"topics": ["structures"], "keep": "history"}
Prepare = Callable[..., StructurePreparer]


@pytest.fixture
def preparer(tmp_path: Path) -> Prepare:
    """A new home with a publication of whole transactions, its sections replaced by what is given."""

    def make(**changes: Any) -> StructurePreparer:
        publication = registry_publication(**{"message": {"bundle": "transaction"}, "topics": HISTORY, **changes})
        return StructurePreparer(InProcess(), tmp_path, publication)  # type: ignore[arg-type]

    return make


def lists(**codes: str) -> bytes:
    return codelists(*(codelist(f"CL_{name.upper()}", "1.0", code) for name, code in codes.items()))


def shown(runs: StructurePreparer, manifest: Any) -> list[tuple[int, str, str | None, list[str | None] | None, int]]:
    """Transaction, topic, key, URNs in the value and number of events of each record."""
    return [
        (
            row["transaction"],
            row["topic"],
            None if row["key"] is None else row["key"].decode(),
            None if row["value"] is None else [each.urn for each in split(BytesIO(row["value"]))],
            row["events"],
        )
        for row in runs.records(manifest)
    ]


def test_a_full_run_is_one_message(preparer: Prepare) -> None:
    runs = preparer()

    manifest = runs.concluded(upserts(SEX_AND_FLOW, lists(a="x")), mode="full", complete=True, registry_transaction=41)

    # Dataflows are before code lists in SDMX-ML 2.1, and code lists come as references want it.
    assert shown(runs, manifest) == [(0, "structures", None, [EXR, SEX, A], 3)]
    [record] = runs.records(manifest)
    assert (record["position"], record["batch"], record["header:contexture_registry_transaction"]) == (0, 0, b"41")
    assert (manifest.records, manifest.transactions, manifest.upserts, manifest.accepted) == (1, 1, 3, 3)
    assert manifest.shards[0].bytes == len(record["value"])
    assert manifest.shards[0].registry == (RegistryPart(transaction=0, first_position=0, id=41, deletions=False),)
    assert runs.held("topics") == {EXR: (["structures"],), SEX: (["structures"],), A: (["structures"],)}


def test_each_transaction_of_the_log_is_a_message_and_deletions_are_tombstones_of_their_own(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded(upserts(lists(a="x", b="x")), mode="full", complete=True, registry_transaction=5)

    manifest = runs.concluded(
        [
            *upserts(lists(a="y", c="x"), transaction=7),
            *only("delete", B, transaction=7),
            *upserts(lists(a="z"), transaction=8),
        ],
        watermark="8",
    )

    assert shown(runs, manifest) == [
        (0, "structures", None, [A, C], 2),
        (1, "structures", B, None, 1),
        (2, "structures", None, [A], 1),
    ]
    assert [(part.first_position, part.id, part.deletions) for part in manifest.shards[0].registry] == [
        (0, 7, False),
        (1, 7, True),
        (2, 8, False),
    ]
    assert (manifest.upserts, manifest.deletes, manifest.records) == (3, 1, 3)


def test_each_topic_of_a_route_gets_a_message_of_what_is_selected_for_it(preparer: Prepare) -> None:
    routes = [{"select": "Codelist=*:*(*)", "topics": ["lists"]}, {"select": "*", "topics": ["all"]}]
    runs = preparer(topics={"routes": routes, "keep": "history"})

    manifest = runs.concluded(upserts(SEX_AND_FLOW), mode="full", complete=True)

    assert shown(runs, manifest) == [(0, "lists", None, [SEX], 1), (0, "all", None, [EXR, SEX], 2)]
    assert manifest.topics == 2


def test_a_structure_in_quarantine_is_in_no_message(preparer: Prepare) -> None:
    runs = preparer()
    broken = upserts(lists(b="x"))[0]._replace(body=b"<nothing/>")

    manifest = runs.concluded([*upserts(lists(a="x")), broken], mode="full", complete=True, source_count=2)

    assert shown(runs, manifest) == [(0, "structures", None, [A], 1)]
    assert [row["id"] for row in runs.quarantine(manifest)] == [B]


def test_a_run_of_deletions_alone_has_tombstones_alone(preparer: Prepare) -> None:
    runs = preparer()
    runs.concluded(upserts(lists(a="x", b="x")), mode="full", complete=True, registry_transaction=5)

    manifest = runs.concluded(only("delete", A, B, transaction=6), watermark="6")

    assert [(key, value) for _, _, key, value, _ in shown(runs, manifest)] == [(B, None), (A, None)]


def test_preparing_again_gives_the_same_records(preparer: Prepare) -> None:
    runs = preparer()
    manifest = runs.prepare(upserts(SEX_AND_FLOW, lists(a="x"), transaction=3))
    first = runs.records(manifest)
    runs.storage.remove(runs.folder.manifest(manifest.outbox))

    again = runs.again("run1")

    assert again == manifest
    assert runs.records(again) == first


def test_a_message_above_the_largest_record_stops_the_run_before_anything_is_sent(preparer: Prepare) -> None:
    runs = preparer(topics={**HISTORY, "config": {"max.message.bytes": 500}})
    message = "3 structures of transaction 41 of the registry for topic structures"

    with pytest.raises(ConfigurationError, match=message) as caught:
        runs.prepare(upserts(lists(a="x", b="x", c="x")), mode="full", complete=True, registry_transaction=41)

    assert "message.bundle: artefact" in caught.value.next_step
    assert runs.storage.publication("structures").outboxes.pending() == []
