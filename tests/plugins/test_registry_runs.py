"""Runs of a publication that reads a registry: what the first one does, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication
from builders.structure_publications import structures
from contexture.errors import ConfigurationError
from contexture.publications import fingerprint
from contexture.sending import LedgerEntry
from contexture.sources.sdmx import SelectorError
from contexture.storage.home import Home
from contexture.storage.orders import StageOrder
from contexture.storage.schemas import QUARANTINE
from contexture.storage.state import StatePointer
from contexture_airflow.run import RunPlan, RunRequest
from contexture_airflow.steps.plan_run import decide, plan_run
from contexture_airflow.steps.stage import place_order

FIRST = StatePointer()
KNOWN = StatePointer(outbox="outbox1", sequence=1, cluster="cluster-a", target="PLAINTEXT://broker:9092")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def asked(**request: Any) -> RunRequest:
    return RunRequest.model_validate({"run_id": "manual__1", **request})


def planned(storage: Home, pointer: StatePointer = FIRST, *, on_startup: str = "pending", **request: Any) -> RunPlan:
    owner = structures(resync={"on_startup": on_startup, "on_config_change": "none"})
    storage.publication(owner.name).state.commit(pointer)
    return plan_run(storage.publication(owner.name), owner, asked(**request), FakeTarget())


@pytest.mark.parametrize(
    ("on_startup", "request_", "mode", "baseline"),
    [
        ("none", {}, "changes", True),
        ("pending", {}, "changes", True),
        ("pending", {"mode": "changes"}, "changes", True),
        ("pending", {"mode": "full"}, "full", False),
        ("full", {}, "full", False),
        ("full", {"mode": "changes"}, "full", False),
        ("pending", {"dry_run": True}, "changes", True),
        ("pending", {"interval": (NOON, NOON)}, "backfill", False),
    ],
)
def test_the_first_run_sends_nothing_unless_a_full_run_is_requested(
    storage: Home, on_startup: str, request_: dict[str, Any], mode: str, baseline: bool
) -> None:
    plan = planned(storage, on_startup=on_startup, **request_)
    assert (plan.mode, plan.baseline) == (mode, baseline)


def test_a_publication_in_mode_full_is_full_from_the_first_run_on() -> None:
    assert decide(structures(source={"mode": "full"}), FIRST, asked(), None)[0] == "full"


def test_the_plan_says_why_nothing_is_sent(storage: Home) -> None:
    assert planned(storage).why == (
        "the first run records what the registry holds and sends nothing (resync.on_startup is pending)"
    )


@pytest.mark.parametrize(("request_", "mode"), [({}, "changes"), ({"mode": "full"}, "full")])
def test_later_runs_are_no_baseline(storage: Home, request_: dict[str, Any], mode: str) -> None:
    plan = planned(storage, KNOWN, **request_)
    assert (plan.mode, plan.baseline) == (mode, False)


def test_what_is_owed_comes_before_a_baseline(storage: Home) -> None:
    plan = planned(storage, FIRST.model_copy(update={"full_run_due": "asked for while it was paused"}))
    assert (plan.mode, plan.baseline) == ("full", False)


@pytest.mark.parametrize("other", [{"cluster": "cluster-b"}, {"target": "SSL://broker:9093"}])
def test_another_kafka_gets_everything_whatever_the_policy_says(storage: Home, other: dict[str, str]) -> None:
    assert planned(storage, KNOWN.model_copy(update=other)).mode == "full"


def test_a_changed_publication_follows_its_policy(storage: Home) -> None:
    pointer = KNOWN.model_copy(update={"fingerprint": "another"})
    assert planned(storage, pointer).mode == "changes"
    owner = structures()
    storage.publication(owner.name).state.commit(pointer)
    assert plan_run(storage.publication(owner.name), owner, asked(), FakeTarget()).mode == "full"


def test_quarantined_structures_are_tried_again_whatever_else_is_due(storage: Home) -> None:
    outbox(storage, structures(), 1, [])
    folder = PublicationPaths(structures().name)
    row = dict.fromkeys(QUARANTINE.names) | {"ordinal": 4, "operation": "upsert", "scope": "X", "id": "urn"}
    row |= {"received_at": NOON, "rule": "identity", "severity": "error", "message": "wrong"}
    with storage.write_atomically(f"{folder.quarantine('outbox1')}/structures.parquet") as path:
        pq.write_table(pa.Table.from_pylist([row], schema=QUARANTINE), path)

    plan = planned(storage, KNOWN.model_copy(update={"full_run_due": "asked for"}), retry_quarantine="outbox1")

    assert (plan.mode, plan.baseline) == ("changes", False)


def test_single_transactions_are_not_sent_again(storage: Home) -> None:
    with pytest.raises(ConfigurationError, match="is never sent twice"):
        planned(storage, KNOWN, republish=True)
    assert planned(storage, KNOWN, republish=True, mode="full").mode == "full"


def test_a_selector_that_can_not_be_read_is_an_error_before_anything_is_read(storage: Home) -> None:
    owner = structures(source={"select": "Codlist=ECB:*(*)"})
    with pytest.raises(SelectorError, match="did you mean Codelist"):
        plan_run(storage.publication(owner.name), owner, asked(), FakeTarget())


@pytest.mark.parametrize(
    ("pointer", "request_", "expected"), [(FIRST, {}, 7), (FIRST, {"mode": "full"}, None), (KNOWN, {}, None)]
)
def test_a_first_run_knows_how_far_another_instance_got(
    storage: Home, pointer: StatePointer, request_: dict[str, Any], expected: int | None
) -> None:
    owner = structures()
    storage.publication(owner.name).state.commit(pointer)
    row = LedgerEntry("other", 9, 3, 3, 3, 2, source_transaction=7, at=NOON)
    kafka = FakeTarget(ledger={0: row})
    assert plan_run(storage.publication(owner.name), owner, asked(**request_), kafka).log_sent_to == expected


def test_a_broker_s_publication_has_no_baseline(storage: Home) -> None:
    plan = plan_run(storage.publication("vehicles"), publication(), asked(mode="changes"), FakeTarget())
    assert (plan.mode, plan.baseline) == ("full", False)


def test_the_order_says_that_nothing_is_to_be_sent(storage: Home) -> None:
    owner = structures()
    plan = RunPlan(run="r", mode="changes", sequence=1, fingerprint=fingerprint(owner), why="", baseline=True)
    placed = place_order(
        storage.publication(owner.name), owner, asked(), plan, lambda publication, interval: FakeTarget()
    )
    order = StageOrder.model_validate_json(Path(placed.uri.removeprefix("file://")).read_bytes())
    assert (order.mode, order.baseline) == ("changes", True)
