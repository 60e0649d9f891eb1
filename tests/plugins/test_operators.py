"""The operators with Airflow's context, a Kafka in memory, and a stand-in for spark-submit."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

# The provider's hook leaves the pipe of spark-submit to the garbage collector.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")]

pytest.importorskip("airflow.sdk")

from airflow.sdk import Asset, BaseNotifier  # noqa: E402
from airflow.sdk.exceptions import (  # noqa: E402
    AirflowFailException,
    AirflowSkipException,
    TaskAwaitingInput,
    TaskDeferred,
)
from airflow.sdk.execution_time import hitl  # noqa: E402

from builders.attempts import failed_send  # noqa: E402
from builders.fake_target import FakeTarget  # noqa: E402
from builders.layout import PublicationPaths  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from contexture.errors import ConfigurationError, RejectedError, RetriableError  # noqa: E402
from contexture.monitoring import RunTables  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.orders import ReplayOptions, StageOrder, StageResult  # noqa: E402
from contexture.storage.shrink_report import ShrinkReport  # noqa: E402
from contexture_airflow.connections import settings as opening  # noqa: E402
from contexture_airflow.operators.conclude import ConcludeOperator  # noqa: E402
from contexture_airflow.operators.publish import PublishOutboxOperator  # noqa: E402
from contexture_airflow.operators.quality_gate import QualityGateOperator  # noqa: E402
from contexture_airflow.operators.settle import SettleOperator  # noqa: E402
from contexture_airflow.operators.stage import StagePublicationOperator  # noqa: E402
from contexture_airflow.task_context import run_request  # noqa: E402

SetConnection = Callable[..., None]
VEHICLES = publication()
SECRET = "s3cret-of-the-broker"
STAGED = {"publication": "vehicles", "run": "run1", "outbox": "outbox1", "sequence": 1, "records": 2, "shards": [0]}
PLAN = {"run": "run1", "mode": "full", "sequence": 1, "fingerprint": "other", "why": "the first run"}


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path / "home"))
    return Home(str(tmp_path / "home"))


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    """The Kafka of every connection, in memory."""
    target = FakeTarget()
    monkeypatch.setattr(opening, "targets", lambda report: target)
    return target


def context(run_type: str = "scheduled", **params: object) -> dict[str, Any]:
    run = SimpleNamespace(
        run_id="run", run_type=run_type, data_interval_start=NOON, data_interval_end=NOON + timedelta(minutes=5)
    )
    return {"params": params, "dag_run": run}


def approve(storage: Home) -> None:
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="test")


def topics_of(storage: Home) -> set[str]:
    """What the quality gate has made before anything is sent."""
    return set(storage.publication("vehicles").outbox("outbox1").topic_counts())


def test_settle_hands_on_a_plan_without_a_logical_date(storage: Home, kafka: FakeTarget) -> None:
    plan = SettleOperator(task_id="settle", publication=VEHICLES).execute(context(mode="auto"))
    assert (plan["mode"], plan["sequence"]) == ("full", 1)
    json.dumps(plan)


def test_a_backfill_run_gets_its_interval(storage: Home, kafka: FakeTarget) -> None:
    plan = SettleOperator(task_id="settle", publication=VEHICLES).execute(context("backfill"))
    assert plan["mode"] == "backfill"
    assert kafka.opened_for == [("vehicles", (NOON, NOON + timedelta(minutes=5)))]


def test_params_of_a_backfill_reach_its_order(storage: Home, kafka: FakeTarget) -> None:
    asked = {"replay_from": "source", "replay_incomplete": "send", "replay_outdated": "send", "topic_prefix": None}
    request = run_request(context("backfill", **asked))
    assert request.replay == ReplayOptions(replay_from="source", incomplete="send", outdated="send", topic_prefix="")
    assert run_request(context("backfill", topic_prefix="again-")).replay == ReplayOptions(topic_prefix="again-")
    assert run_request(context()).replay == ReplayOptions()


def test_the_gate_returns_the_shards_to_send(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1"), [], records("car2")])
    assert QualityGateOperator(task_id="quality_gate", staged=STAGED).execute(context()) == [0, 2]


def test_the_outbox_of_a_run_that_the_gate_rejects_is_known_to_its_publication(
    storage: Home, kafka: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTEXTURE_DATABASE", raising=False)
    store = RunTables.of_home(storage.root)
    assert store is not None
    store.insert_run("vehicles", "run1", run_id="run", mode="changes", sequence=1)
    outbox(storage, VEHICLES, 1, [records("car1")], failed={"volume": "critical"})
    with pytest.raises(RejectedError):
        QualityGateOperator(task_id="quality_gate", staged=STAGED).execute(context())
    assert [run.outbox for run in store.runs("vehicles")] == ["outbox1"]
    store.close()


def test_the_gate_of_a_dry_run_returns_none(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    assert QualityGateOperator(task_id="quality_gate", staged=STAGED).execute(context(dry_run=True)) == []


def test_publish_sends_one_shard_and_returns_counts_only(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1", "car2"), records("car3")])
    approve(storage)
    kafka.topics = topics_of(storage)
    result = PublishOutboxOperator(task_id="publish", staged=STAGED, shard=0).execute(context())
    assert (result["sent"], result["skipped"], result["superseded"]) == (2, 0, False)
    assert [key for _, key, _ in kafka.sent] == [b"car1", b"car2"]


def test_publish_goes_on_counting_after_a_kill_and_fails_for_good_when_used_up(
    storage: Home, kafka: FakeTarget
) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage)
    storage.publication("vehicles").attempts.keep(failed_send("outbox1", shard=0, allowed=3))
    kafka.failures = [RetriableError("no broker", next_step="wait")] * 2
    operator = PublishOutboxOperator(task_id="publish", staged=STAGED, shard=0)
    with pytest.raises(AirflowFailException, match=r"batch_ttl is used up after 3 attempts.*no broker"):
        operator.execute(context())
    assert kafka.waited_ms == [20]
    assert storage.publication("vehicles").outboxes.status("outbox1").status == "approved"


def test_a_late_attempt_gives_the_slot_back_and_goes_on_in_time(storage: Home, kafka: FakeTarget) -> None:
    hourly = publication(batches={"batch_ttl": 2, "batch_retry_intervals": [3_600_000]})
    outbox(storage, hourly, 1, [records("car1")])
    approve(storage)
    kafka.failures = [RetriableError("no broker", next_step="wait")]
    kafka.topics = topics_of(storage)
    operator = PublishOutboxOperator(task_id="publish", staged=STAGED, shard=0)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute(context())
    noted = storage.publication("vehicles").attempts.of_shard("outbox1", 0)
    assert noted is not None
    assert deferred.value.trigger.moment == noted.next_at
    assert deferred.value.method_name == "resume"
    with pytest.raises(TaskDeferred):
        operator.resume(context(), event=None)
    storage.publication("vehicles").attempts.keep(noted.model_copy(update={"next_at": NOON}))
    assert operator.resume(context(), event=None)["sent"] == 1


def test_settle_gives_its_slot_back_too(storage: Home, kafka: FakeTarget) -> None:
    hourly = publication(batches={"batch_ttl": 2, "batch_retry_intervals": [3_600_000]})
    outbox(storage, hourly, 1, [records("car1")])
    approve(storage)
    kafka.failures = [RetriableError("no broker", next_step="wait")]
    operator = SettleOperator(task_id="settle", publication=hourly)
    with pytest.raises(TaskDeferred):
        operator.execute(context(mode="auto"))
    noted = storage.publication("vehicles").attempts.of_shard("outbox1", 0)
    assert noted is not None
    storage.publication("vehicles").attempts.keep(noted.model_copy(update={"next_at": NOON}))
    assert operator.resume(context(mode="auto"))["settled"] == ["outbox1"]


def test_settle_fails_for_good_when_used_up(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage)
    kafka.failures = [RetriableError("no broker", next_step="wait")] * 3
    with pytest.raises(AirflowFailException, match="used up after 3 attempts"):
        SettleOperator(task_id="settle", publication=VEHICLES).execute(context(mode="auto"))


def test_publish_is_retried_by_airflow_while_attempts_are_left(
    storage: Home, kafka: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage)

    def no_answer(*_: object) -> None:
        raise RetriableError("no broker", next_step="wait")

    monkeypatch.setattr(kafka, "send", no_answer)
    with pytest.raises(RetriableError):
        PublishOutboxOperator(task_id="publish", staged=STAGED, shard=0).execute(context())


def test_conclude_puts_the_counts_on_the_asset_event(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    approve(storage)
    kafka.stand(0, "outbox1", 1, 1)
    asset = Asset("published_vehicles")
    event = SimpleNamespace(extra={})
    ran = {**context(), "outlet_events": {asset: event}}
    counts = ConcludeOperator(task_id="conclude", staged=STAGED, published=asset).execute(ran)
    assert event.extra == counts
    assert counts["records"] == 1


def test_conclude_is_skipped_after_a_dry_run(storage: Home, kafka: FakeTarget) -> None:
    outbox(storage, VEHICLES, 1, [records("car1")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "rejected", reason="dry run")
    operator = ConcludeOperator(task_id="conclude", staged=STAGED, published=Asset("published_vehicles"))
    with pytest.raises(AirflowSkipException):
        operator.execute(context())


SPARK_SUBMIT = """#!{python}
import json, os, sys
order = sys.argv[sys.argv.index("--order") + 1]
json.dump({{"arguments": sys.argv[1:], "environment": dict(os.environ)}}, open({seen!r}, "w"))
answer = {answer!r}
if answer is not None:
    open(os.path.join(os.path.dirname(order), "result.json"), "w").write(answer)
print("spark says hello")
sys.exit({code})
"""


@pytest.fixture
def submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_connection: SetConnection
) -> Callable[[StageResult | None, int], Callable[[], dict[str, Any]]]:
    """Puts a stand-in for spark-submit on PATH; gives what it saw."""
    set_connection("context_broker", conn_type="http", host="orion", extra={"token": SECRET})
    # The provider takes no path of a binary, but another of its names.
    set_connection("spark_default", conn_type="spark", host="local[2]", extra={"spark-binary": "spark2-submit"})
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("JAVA_HOME", "/opt/java")

    def answering(answer: StageResult | None, code: int) -> Callable[[], dict[str, Any]]:
        seen, script = tmp_path / "seen.json", tmp_path / "spark2-submit"
        text = None if answer is None else answer.model_dump_json()
        script.write_text(SPARK_SUBMIT.format(python=sys.executable, seen=str(seen), answer=text, code=code))
        script.chmod(0o755)
        return lambda: json.loads(seen.read_text())  # type: ignore[no-any-return]

    return answering


def stage(**params: object) -> dict[str, Any]:
    operator = StagePublicationOperator(task_id="stage", publication=VEHICLES, plan=PLAN)
    return operator.execute(context(**params))  # type: ignore[arg-type]


GOOD = StageResult(outbox="outbox1", sequence=1, records=2, shards=(0,), approved=True, report="/report")


def test_stage_submits_one_argument_and_returns_the_outbox(storage: Home, kafka: FakeTarget, submit: Any) -> None:
    seen = submit(GOOD, 0)
    staged = stage(confirm_shrink=True)
    assert (staged["outbox"], staged["records"], staged["shards"]) == ("outbox1", 2, [0])
    arguments = seen()["arguments"]
    script = arguments.index("--order") - 1
    assert arguments[script].endswith("spark_jobs/stage.py")
    assert arguments[script + 1 :] == ["--order", storage.uri(PublicationPaths("vehicles").order("run1"))]
    order = StageOrder.model_validate_json(storage.read(PublicationPaths("vehicles").order("run1")))
    assert (order.mode, order.confirm_shrink) == ("full", True)


def test_secrets_reach_spark_by_the_environment_alone(
    storage: Home, kafka: FakeTarget, submit: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    seen = submit(GOOD, 0)
    stage()
    logged = "".join(capfd.readouterr())
    assert SECRET in seen()["environment"]["CONTEXTURE_SOURCE_CONNECTION"]
    assert SECRET not in json.dumps(seen()["arguments"])
    assert "Spark-Submit cmd" in logged
    assert SECRET not in logged
    assert SECRET not in storage.read(PublicationPaths("vehicles").order("run1")).decode()


def test_spark_gets_this_interpreter_java_and_the_modules(storage: Home, kafka: FakeTarget, submit: Any) -> None:
    seen = submit(GOOD, 0)
    stage()
    environment = seen()["environment"]
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert environment["JAVA_HOME"] == "/opt/java"
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert environment["CONTEXTURE_HOME"] == storage.root
    folders = [Path(part) for part in environment["PYTHONPATH"].split(os.pathsep)]
    assert any((folder / "contexture").is_dir() for folder in folders)
    assert any((folder / "spark_jobs").is_dir() for folder in folders)


def test_nothing_secret_is_set_before_the_task_runs() -> None:
    operator = StagePublicationOperator(task_id="stage", publication=VEHICLES, plan=PLAN)
    assert operator.env_vars is None
    assert operator.application_args is None


def test_the_jobs_own_error_is_raised_by_its_intent(storage: Home, kafka: FakeTarget, submit: Any) -> None:
    error = ConfigurationError("the tenant is empty", next_step="correct source.service")
    submit(StageResult(error=error.as_dict()), 1)
    with pytest.raises(ConfigurationError, match=r"the tenant is empty\. Next: correct source\.service"):
        stage()


SHRUNK = ConfigurationError("12 are gone", next_step="look", vanishing=12, held=20, limit=10)
ASKING = publication(
    source={**VEHICLES.source.model_dump(exclude_defaults=True), "shrink_limit": {"beyond": "ask", "answer_hours": 2}},
    notify={"notifiers": [{"notifier": f"{__name__}.Keeping"}]},
)
APPROVED = {"chosen_options": ["Approve"], "params_input": {"reason": "sold"}, "responded_by_user": {"name": "ada"}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The questions that were put to people."""
    questions: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **question: questions.append(question))
    return questions


class Keeping(BaseNotifier):
    """Keeps the alerts that people would get."""

    alerts: ClassVar[list[dict[str, str]]] = []

    def notify(self, context: Any) -> None:
        self.alerts.append(context["alert"])


@pytest.fixture
def alerts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The alerts that people got."""
    monkeypatch.delenv("CONTEXTURE_MAIL_TO", raising=False)
    Keeping.alerts.clear()
    return Keeping.alerts


def test_a_shrunk_source_waits_for_an_answer_where_it_is_asked_for(
    storage: Home, kafka: FakeTarget, submit: Any, asked: list[dict[str, Any]], alerts: list[dict[str, str]]
) -> None:
    submit(StageResult(error=SHRUNK.as_dict()), 1)
    storage.publication("vehicles").run("run1").write_shrink_report(
        ShrinkReport.of(['["a"]'], count=12, held=20, limit=10)
    )
    operator = StagePublicationOperator(task_id="stage", publication=ASKING, plan=PLAN)
    instance = SimpleNamespace(id="ti", dag_id="publish_vehicles", task_id="stage")
    running = {**context(), "task_instance": instance}

    with pytest.raises(TaskAwaitingInput) as waiting:
        operator.execute(running)  # type: ignore[arg-type]
    assert [alert["kind"] for alert in alerts] == ["waiting for approval"]
    assert 'Would be deleted: ["a"]' in alerts[0]["text"]
    assert (waiting.value.method_name, waiting.value.timeout) == ("resume", timedelta(hours=2))
    (question,) = asked
    assert (question["ti_id"], question["options"]) == ("ti", ["Approve", "Reject"])
    assert question["subject"] == "vehicles: 12 of 20 would be deleted"
    assert '    ["a"]' in question["body"]
    assert question["params"]["reason"]["schema"]["type"] == "string"

    submit(GOOD, 0)
    staged = operator.resume(running, APPROVED)  # type: ignore[arg-type]
    assert staged["outbox"] == "outbox1"
    order = storage.read(PublicationPaths("vehicles").order("run1"))
    assert StageOrder.model_validate_json(order).confirm_shrink is True
    # A retry of the same run does not ask again.
    assert operator.execute(running)["outbox"] == "outbox1"  # type: ignore[arg-type]


def test_a_rejected_one_submits_nothing_and_fails(storage: Home, kafka: FakeTarget, submit: Any) -> None:
    seen = submit(GOOD, 0)
    operator = StagePublicationOperator(task_id="stage", publication=ASKING, plan=PLAN)
    with pytest.raises(ConfigurationError, match="ada rejected that they are deleted"):
        operator.resume(context(), {**APPROVED, "chosen_options": ["Reject"]})  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        seen()


def test_without_that_key_it_fails_at_once(
    storage: Home, kafka: FakeTarget, submit: Any, asked: list[dict[str, Any]]
) -> None:
    submit(StageResult(error=SHRUNK.as_dict()), 1)
    storage.publication("vehicles").run("run1").write_shrink_report(
        ShrinkReport.of(['["a"]'], count=12, held=20, limit=10)
    )
    with pytest.raises(ConfigurationError, match="12 are gone"):
        stage()
    assert asked == []


def test_a_submit_that_dies_without_an_answer_is_retriable(storage: Home, kafka: FakeTarget, submit: Any) -> None:
    submit(None, 137)
    with pytest.raises(RetriableError, match="ended without a result"):
        stage()


def test_executors_elsewhere_get_the_modules_as_a_zip(
    storage: Home, kafka: FakeTarget, submit: Any, set_connection: SetConnection
) -> None:
    set_connection(
        "spark_default", conn_type="spark", host="spark://master", port=7077, extra={"spark-binary": "spark2-submit"}
    )
    seen = submit(GOOD, 0)
    stage()
    arguments = seen()["arguments"]
    assert arguments[arguments.index("--py-files") + 1].endswith("contexture-modules.zip")


def test_cluster_mode_is_refused_because_it_would_show_secrets(
    storage: Home, kafka: FakeTarget, submit: Any, set_connection: SetConnection
) -> None:
    set_connection("spark_default", conn_type="spark", host="k8s://cluster", extra={"deploy-mode": "cluster"})
    submit(GOOD, 0)
    with pytest.raises(ConfigurationError, match="deploy-mode cluster"):
        stage()
