"""What is counted reaches a StatsD server, is on the page, and is all that the dashboard asks for."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

# The client of StatsD leaves its socket to the garbage collector.
pytestmark = [pytest.mark.airflow, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

pytest.importorskip("airflow.sdk")

from airflow.sdk.observability import stats  # noqa: E402
from airflow.sdk.observability.metrics import stats_utils  # noqa: E402

from builders.attempts import failed_send  # noqa: E402
from builders.fake_target import FakeTarget  # noqa: E402
from builders.outboxes import NOON, outbox, publication, records  # noqa: E402
from contexture.operations.verification.result import VerificationResult  # noqa: E402
from contexture.sending import ShardResult  # noqa: E402
from contexture.storage.home import Home  # noqa: E402
from contexture.storage.manifests import Manifest  # noqa: E402
from contexture_airflow import metrics  # noqa: E402
from contexture_airflow.metrics import METRICS  # noqa: E402
from contexture_airflow.run import RunRequest  # noqa: E402
from contexture_airflow.steps.settle import finish_open_transaction  # noqa: E402

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
VEHICLES = publication()

Received = Callable[[], dict[str, str]]


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    """What a StatsD server got: values with their kinds, by name and tags."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.2)
        settings = {
            "STATSD_ON": "True",
            "STATSD_HOST": "127.0.0.1",
            "STATSD_PORT": str(server.getsockname()[1]),
            "STATSD_INFLUXDB_ENABLED": "True",
        }
        for name, value in settings.items():
            monkeypatch.setenv(f"AIRFLOW__METRICS__{name}", value)
        stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
        yield lambda: dict(_packets(server))
    monkeypatch.undo()
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)


def _packets(server: socket.socket) -> Iterator[tuple[str, str]]:
    while True:
        try:
            packet = server.recv(65_535).decode()
        except TimeoutError:
            return
        for line in packet.splitlines():
            name, _, value = line.partition(":")
            yield name, value


def found(**differences: int) -> VerificationResult:
    document: dict[str, Any] = {
        "publication": "vehicles",
        "verified_at": NOON,
        "seconds": 1.5,
        "basis": "keys",
        "generation": 1,
        "sequence": 1,
        "outbox": "outbox1",
        "ledger": {},
        "topics": 1,
        "partitions": 1,
        "missing_topics": (),
        "held": 1,
        "records": 1,
        "compared": {},
        "unjudged": {},
        "differences": differences,
        "samples": (),
    }
    return VerificationResult.model_validate(document)


def count_everything(manifest: Manifest) -> None:
    metrics.count_pending("vehicles", 2)
    metrics.count_sent("vehicles", ShardResult(0, "outbox1", 30, 0, 3, 4_000, 0.25, superseded=False))
    metrics.count_failure("vehicles", failed_send("outbox1"))
    metrics.count_concluded(manifest, NOON + timedelta(seconds=90), 1)
    metrics.count_verified(found(missing=4, extra=0, different=0, order=0))


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return outbox(Home(str(tmp_path)), VEHICLES, 1, [records("a", "b", "c")])


def test_a_statsd_server_receives_what_is_counted(received: Received, manifest: Manifest) -> None:
    count_everything(manifest)

    metrics_sent = {name.removeprefix("airflow.contexture."): value for name, value in received().items()}
    own = ",publication=vehicles"
    assert metrics_sent == {
        f"pending_outboxes{own}": "2|g",
        f"records_sent{own}": "30|c",
        f"bytes_sent{own}": "4000|c",
        f"transactions_sent{own}": "3|c",
        f"send_duration{own}": "250.000000|ms",
        f"send_failures{own}": "1|c",
        f"read{own}": "3|c",
        f"quarantined{own}": "0|c",
        f"upserts{own}": "3|c",
        f"deletes{own}": "0|c",
        f"dead_letters{own}": "1|c",
        f"runs_concluded{own},mode=changes": "1|c",
        f"run_lag_seconds{own}": "90.0|g",
        f"replica_differences{own},kind=missing": "4|g",
        f"replica_differences{own},kind=extra": "0|g",
        f"replica_differences{own},kind=different": "0|g",
        f"replica_differences{own},kind=order": "0|g",
        f"verification_duration{own}": "1500.000000|ms",
    }


def test_every_metric_is_emitted(received: Received, manifest: Manifest) -> None:
    count_everything(manifest)

    kinds = {"c": "counter", "g": "gauge", "ms": "timer"}
    metrics_sent = {
        (name.removeprefix("airflow.").split(",")[0], kinds[value.split("|")[1]]) for name, value in received().items()
    }
    assert metrics_sent == {(metric.name, metric.kind) for metric in METRICS}


def test_what_the_steps_do_is_counted(received: Received, tmp_path: Path) -> None:
    storage, target = Home(str(tmp_path)), FakeTarget()
    manifest = outbox(storage, VEHICLES, 1, [records("a", "b", "c")])
    storage.publication("vehicles").outboxes.set_status("outbox1", "approved", reason="good")

    settled = finish_open_transaction(
        storage.publication(VEHICLES.name), VEHICLES, RunRequest(run_id="later"), target, lambda sentence: None
    )

    metrics_sent = {name.removeprefix("airflow.contexture.").split(",")[0]: value for name, value in received().items()}
    assert settled.settled == (manifest.outbox,)
    assert metrics_sent["pending_outboxes"] == "1|g"
    assert metrics_sent["records_sent"] == "3|c"
    assert metrics_sent["runs_concluded"] == "1|c"


def test_a_send_that_went_well_in_the_end_is_no_failure(received: Received) -> None:
    metrics.count_failure("vehicles", failed_send("outbox1").model_copy(update={"state": "sent"}))

    assert received() == {}


def test_counting_never_fails_a_task(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("the collector is away")

    monkeypatch.setattr(stats, "gauge", broken)

    metrics.count_pending("vehicles", 2)

    assert "contexture.pending_outboxes could not be recorded" in caplog.text


def test_the_page_lists_what_there_is() -> None:
    rows = re.findall(
        r"^\| `(contexture\.\w+)` \| (\w+) \|(.*?)\| (.*) \|$", (REFERENCE / "metrics.md").read_text(), re.MULTILINE
    )
    listed = [(name, kind, tuple(re.findall(r"`(\w+)`", tags)), meaning) for name, kind, tags, meaning in rows]

    assert listed == [(metric.name, metric.kind, metric.tags, metric.meaning) for metric in METRICS]


def test_the_dashboard_asks_only_for_what_there_is_and_for_all_of_it() -> None:
    dashboard = json.loads((REFERENCE / "contexture-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [variable["query"]["query"] for variable in dashboard["templating"]["list"][1:]]
    asked = {name for query in queries for name in re.findall(r"\bairflow_\w+", query)}
    known = {f"airflow_{metric.name.replace('.', '_')}": metric.kind for metric in METRICS}
    timers = {name for name, kind in known.items() if kind == "timer"}
    # Seconds of StatsD's exporter, and milliseconds of OpenTelemetry.
    parts = {f"{name}{unit}_{part}" for name in timers for unit in ("", "_milliseconds") for part in ("sum", "count")}

    assert asked == (known.keys() - timers) | parts
    labels = {label for query in queries for by in re.findall(r"by \(([^)]*)\)", query) for label in by.split(", ")}
    assert labels == {"publication", *(tag for metric in METRICS for tag in metric.tags)}


def test_the_dashboard_asks_for_counters_by_the_names_of_statsd_and_of_opentelemetry() -> None:
    queries = json.dumps(json.loads((REFERENCE / "contexture-dashboard.json").read_text())).replace('\\"', '"')
    counters = [f"airflow_{metric.name.replace('.', '_')}" for metric in METRICS if metric.kind == "counter"]

    assert [name for name in counters if f'__name__=~"{name}(_total)?"' not in queries] == []


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads((REFERENCE / "contexture-dashboard.json").read_text())

    assert dashboard["title"] == "Contexture"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    corners = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(corners)) == len(corners)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in dashboard["panels"])
