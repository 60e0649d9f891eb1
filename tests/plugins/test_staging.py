"""The order to the stage job, and what its answer means."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.fake_target import FakeTarget
from builders.layout import PublicationPaths
from builders.outboxes import NOON, outbox, publication
from contexture.errors import ConfigurationError, RejectedError, RetriableError
from contexture.publications import Publication, fingerprint
from contexture.storage.conclusion import require_full_run
from contexture.storage.home import Home
from contexture.storage.orders import ReplayOptions, Retry, StageOrder, StageResult
from contexture.storage.schemas import QUARANTINE
from contexture.storage.state import StatePointer
from contexture_airflow.run import RunPlan, RunRequest
from contexture_airflow.steps.settle import finish_open_transaction
from contexture_airflow.steps.stage import PlacedOrder, place_order, read_staged_outbox
from fakes.full_disk import FullDisk

VEHICLES = publication()
FOLDER = PublicationPaths("vehicles")
SUBMIT_FAILED = RuntimeError("spark-submit ended with 1")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def place(storage: Home, owner: Publication = VEHICLES, sequence: int = 3) -> PlacedOrder:
    plan = RunPlan(run="run3", mode="changes", sequence=sequence, fingerprint=fingerprint(VEHICLES), why="")
    request = RunRequest(run_id="a", confirm_shrink=True)
    return place_order(storage.publication(owner.name), owner, request, plan, FakeTarget())


def placed(storage: Home) -> StageOrder:
    return StageOrder.model_validate_json(storage.read(FOLDER.order("run3")))


def test_the_order_says_what_settle_planned_and_the_form_asked(storage: Home) -> None:
    assert place(storage).uri == f"{storage.root}/vehicles/runs/run3/order.json"
    order = placed(storage)
    assert (order.mode, order.sequence, order.run) == ("changes", 3, "run3")
    assert (order.confirm_shrink, order.republish, order.interval) == (True, False, None)


def test_the_order_names_the_cluster_that_settle_decided_for(storage: Home) -> None:
    request = RunRequest(run_id="a")
    plan = finish_open_transaction(
        storage.publication(VEHICLES.name), VEHICLES, request, FakeTarget(cluster_id="cluster-b"), lambda sentence: None
    )
    place_order(storage.publication(VEHICLES.name), VEHICLES, request, plan, FakeTarget(cluster_id="cluster-c"))
    order = StageOrder.model_validate_json(storage.read(FOLDER.order(plan.run)))
    assert order.cluster == "cluster-b"


def test_the_order_says_what_the_run_pays(storage: Home) -> None:
    require_full_run(storage.publication("vehicles"), "an outbox was abandoned")
    place(storage)
    assert placed(storage).full_run_due == "an outbox was abandoned"


def test_a_quarantine_to_retry_is_in_the_order_unless_an_interval_is_backfilled(storage: Home) -> None:
    outbox(storage, VEHICLES, 1, [])
    row = {"ordinal": 1, "operation": "upsert", "scope": "vehicles", "received_at": NOON}
    refused = {**row, "rule": "stale", "severity": "error", "message": "old"}
    with storage.write_atomically(f"{FOLDER.quarantine('outbox1')}/0.parquet") as path:
        pq.write_table(pa.Table.from_pylist([refused], schema=QUARANTINE), path)
    asked = {"run_id": "a", "retry_quarantine": "outb", "retry_rules": ["stale"]}
    plan = RunPlan(run="run3", mode="changes", sequence=3, fingerprint=fingerprint(VEHICLES), why="")
    for interval, expected in ((None, Retry(outbox="outbox1", rules=("stale",))), ((NOON, NOON), None)):
        request = RunRequest.model_validate({**asked, "interval": interval})
        place_order(storage.publication(VEHICLES.name), VEHICLES, request, plan, FakeTarget())
        assert placed(storage).retry == expected


def test_how_an_interval_is_sent_again_is_in_the_order(storage: Home) -> None:
    options = ReplayOptions(replay_from="source", topic_prefix="again-")
    plan = RunPlan(run="run3", mode="backfill", sequence=3, fingerprint=fingerprint(VEHICLES), why="")
    request = RunRequest(run_id="a", interval=(NOON, NOON), replay=options)
    place_order(storage.publication(VEHICLES.name), VEHICLES, request, plan, FakeTarget())
    assert placed(storage).replay == options


def test_the_answer_of_an_earlier_try_is_forgotten(storage: Home) -> None:
    storage.write(FOLDER.result("run3"), StageResult(outbox="old", sequence=3).to_json())
    order = place(storage)
    with pytest.raises(RetriableError, match="without a result"):
        read_staged_outbox(storage.publication(order.publication), order, SUBMIT_FAILED)


def test_a_job_without_an_answer_leaves_one(storage: Home) -> None:
    order = place(storage)
    with pytest.raises(RetriableError, match=r"ended without a result\. Next: read the log above: memory, Java"):
        read_staged_outbox(storage.publication(order.publication), order, SUBMIT_FAILED)
    result = StageResult.model_validate_json(storage.read(FOLDER.result("run3")))
    assert result.error is not None
    assert result.error["message"] == "the Spark job ended without a result"


def test_a_job_that_found_no_room_for_its_answer_is_reported_as_a_full_disk(storage: Home) -> None:
    order = place(storage)
    storage.filesystem = FullDisk(storage.filesystem)
    with pytest.raises(RetriableError, match=r"No space left on device\. Next: make room or repair"):
        read_staged_outbox(storage.publication(order.publication), order, SUBMIT_FAILED)


def test_a_publication_corrected_since_settle_is_planned_and_read_anew(storage: Home) -> None:
    storage.publication("vehicles").state.commit(
        StatePointer(outbox="outbox1", sequence=2, fingerprint=fingerprint(VEHICLES))
    )
    place(storage)
    storage.write(FOLDER.landing_manifest("run3"), b"{}")
    corrected = publication(topics={"data_model": "dm-by-service"})
    place(storage, corrected)
    assert (placed(storage).mode, placed(storage).fingerprint) == ("full", fingerprint(corrected))
    assert not storage.exists(FOLDER.landing("run3"))


def test_a_retry_keeps_what_was_read(storage: Home) -> None:
    place(storage)
    storage.write(FOLDER.landing_manifest("run3"), b"{}")
    place(storage)
    assert storage.exists(FOLDER.landing_manifest("run3"))


def test_a_run_that_is_over_is_not_staged_again(storage: Home) -> None:
    storage.publication("vehicles").state.commit(StatePointer(sequence=3, outbox="outbox3"))
    with pytest.raises(ConfigurationError, match="run 3 has ended"):
        place(storage)


@pytest.mark.parametrize("kind", [RetriableError, ConfigurationError, RejectedError])
def test_an_error_of_the_job_comes_back_with_its_intent(storage: Home, kind: type[RetriableError]) -> None:
    order = place(storage)
    error = kind("the broker is ill", next_step="heal it")
    storage.write(FOLDER.result("run3"), StageResult(error=error.as_dict()).to_json())
    with pytest.raises(kind, match=r"the broker is ill. Next: heal it"):
        read_staged_outbox(storage.publication(order.publication), order, SUBMIT_FAILED)


@pytest.mark.parametrize("submit_failure", [None, SUBMIT_FAILED], ids=["job ended well", "process died at its end"])
def test_a_good_answer_names_outbox_shards_and_report(storage: Home, submit_failure: Exception | None) -> None:
    order = place(storage)
    result = StageResult(outbox="outbox3", sequence=3, records=7, shards=(1,), approved=True, report="/home/report/x")
    storage.write(FOLDER.result("run3"), result.to_json())
    storage.write(f"{FOLDER.report('outbox3')}/index.html", b"report")
    assert read_staged_outbox(storage.publication(order.publication), order, submit_failure).to_xcom() == {
        "publication": "vehicles",
        "run": "run3",
        "outbox": "outbox3",
        "sequence": 3,
        "records": 7,
        "shards": [1],
        "report": storage.uri("vehicles/report/outbox3/index.html"),
    }


def test_an_answer_without_a_page_of_a_report_names_none(storage: Home) -> None:
    order = place(storage)
    result = StageResult(outbox="outbox3", sequence=3, records=7, shards=(1,), approved=True, report="/home/report/x")
    storage.write(FOLDER.result("run3"), result.to_json())
    assert read_staged_outbox(storage.publication(order.publication), order, None).report is None
