"""What servers say of themselves, as figures of a bench: requests, rows, connections, bytes of logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tools.bench.engines import attending
from tools.bench.engines.airflow import asked, processor
from tools.bench.engines.attending import by_part
from tools.bench.engines.counted_store import Traffic
from tools.bench.engines.database import GONE, Stock, by_owner, ports_of
from tools.bench.engines.kafka import LEDGER, log_bytes
from tools.bench.engines.rounds import Round
from tools.bench.engines.store_program import Noting
from tools.bench.engines.submitting import DRIVER, EXECUTORS, kind_of
from tools.bench.outbox_files import TOPIC


def test_a_listing_is_distinguished_from_a_read_and_counted_as_writing() -> None:
    lines = [
        '["PUT", "/contexture/home/a", "", "200", 100, 0]',
        '["GET", "/contexture/home/a", "", "200", 0, 100]',
        '["GET", "/contexture", "list-type=2&prefix=home", "200", 0, 700]',
        '["HEAD", "/contexture/home/b", "", "404", 0, 0]',
        '["POST", "/contexture/home/b", "uploads", "200", 5, 9]',
        '["DELETE", "/contexture/home/a", "", "204", 0, 0]',
    ]
    traffic = Traffic.parsed(lines)
    assert traffic.by_method == {"PUT": 1, "GET": 1, "LIST": 1, "HEAD": 1, "POST": 1, "DELETE": 1}
    assert (traffic.requests, traffic.writing, traffic.received, traffic.sent) == (6, 3, 105, 809)


def test_the_server_notes_what_it_got_and_gave(tmp_path: Path) -> None:
    def inner(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        start("206 Partial Content", [])
        return [b"four", b"teen!"]

    application, statuses = Noting(inner, tmp_path / "notes"), list[str]()
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/b/k", "QUERY_STRING": "x=1", "CONTENT_LENGTH": "17"}
    answer = b"".join(application(environ, lambda status, headers: statuses.append(status)))

    assert (answer, statuses) == (b"fourteen!", ["206 Partial Content"])
    assert json.loads((tmp_path / "notes").read_text()) == ["GET", "/b/k", "x=1", "206", 17, 9]


def test_a_body_in_chunks_counts_by_what_it_holds(tmp_path: Path) -> None:
    application = Noting(lambda environ, start: start("200 OK", []) or [], tmp_path / "notes")
    environ = {"REQUEST_METHOD": "PUT", "PATH_INFO": "/b/k", "HTTP_X_AMZ_DECODED_CONTENT_LENGTH": "33"}
    list(application(environ, lambda status, headers: None))
    assert json.loads((tmp_path / "notes").read_text()) == ["PUT", "/b/k", "", "200", 33, 0]


def test_only_tables_that_grew_are_listed() -> None:
    before = Stock({"log": 10, "job": 4}, {"log": 8192, "job": 8192})
    now = Stock({"log": 25, "job": 4, "new": 2}, {"log": 16384, "job": 8192, "new": 8192})
    assert now.since(before) == Stock({"log": 15, "new": 2}, {"log": 8192, "new": 8192})


def test_connections_belong_to_whom_their_port_belongs() -> None:
    assert by_owner([1, 2, 3, 9], {1: "worker-1", 2: "worker-1", 3: "worker-3"}) == {
        "worker-1": 2,
        "worker-3": 1,
        GONE: 1,
    }
    clients = [{"addr": "127.0.0.1:5001", "name": ""}, {"addr": "[::1]:5002"}, {"addr": "127.0.0.1:9", "name": "bench"}]
    assert ports_of(clients) == [5001, 5002]


def test_records_and_ledgers_are_added_up_over_brokers_without_indexes_and_what_is_deleted(tmp_path: Path) -> None:
    for broker in ("node-1", "node-2"):
        for folder, name, size in (
            (f"{TOPIC}-0", "00000000000000000000.log", 100),
            (f"{TOPIC}-1", "00000000000000000000.log", 20),
            (f"{TOPIC}-1", "00000000000000000000.index", 7),
            (f"{TOPIC}-0.4f-delete", "00000000000000000000.log", 1000),
            (f"{LEDGER}bench-0-0", "00000000000000000000.log", 3),
            ("__transaction_state-0", "00000000000000000000.log", 5),
        ):
            file = tmp_path / broker / "data" / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"." * size)
    assert log_bytes(tmp_path) == {TOPIC: 240, LEDGER: 6}


def test_a_run_is_shown_by_what_it_adds_to_the_platform_at_rest() -> None:
    rest = Round(0, 30.0, {"scheduler": 3.0}, 60, Traffic())
    busy = Round(4, 60.0, {"scheduler": 14.0}, 520, Traffic())
    # At rest the scheduler takes a tenth of a core, and PostgreSQL two statements a second.
    assert busy.processor_of("scheduler", rest) == 2.0
    assert busy.statements_of(rest) == 100.0
    assert busy.runs_a_minute == 4.0


def test_sparks_processes_are_known_by_their_command_lines() -> None:
    assert kind_of("java -cp /x org.apache.spark.deploy.SparkSubmit --conf a=b stage.py") == DRIVER
    assert kind_of("/venv/bin/python /project/spark_jobs/stage.py --order file") == DRIVER
    assert kind_of("java org.apache.spark.executor.CoarseGrainedExecutorBackend --cores 1") == EXECUTORS
    assert kind_of("/venv/bin/python -m pyspark.daemon pyspark.worker") == EXECUTORS
    assert kind_of("java org.apache.spark.deploy.worker.Worker spark://127.0.0.1:1") is None


def test_a_workers_processes_are_known_by_their_titles() -> None:
    assert attending.kind_of("[celeryd: worker-1@host:MainProcess] -active- (celery worker)") == attending.WORKER
    assert attending.kind_of("airflow supervisor: 01a2") == attending.SUPERVISOR
    assert attending.kind_of("airflow worker -- 01a2") == attending.TASK
    assert attending.kind_of("java org.apache.spark.deploy.SparkSubmit spark_jobs/stage.py") == attending.DRIVER_JVM
    assert attending.kind_of("python /project/spark_jobs/stage.py --order file") == attending.DRIVER_PYTHON
    assert attending.kind_of("bash") is None


def test_only_the_worker_with_most_connections_is_counted() -> None:
    most = {("redis", "worker-1"): 5, ("redis", "worker-2"): 7, ("redis", "Airflow's scheduler"): 2}
    assert by_part(most) == {("redis", "a Celery worker"): 7, ("redis", "Airflow's scheduler"): 2}


def test_a_full_run_is_compared_with_one_with_nothing_to_send() -> None:
    rest = Round(0, 10.0, {"PostgreSQL": 1.0, "Redis": 1.0}, 100, Traffic())
    full = Round(2, 20.0, {"PostgreSQL": 8.0, "Redis": 2.0}, 1200, Traffic({"PUT": 6, "GET": 2}, 4096, 2048))
    none = Round(2, 10.0, {"PostgreSQL": 2.0, "Redis": 0.5}, 400, Traffic({"PUT": 2, "GET": 2}, 2048, 2048))
    database, at_rest, queue, _ = processor("100 entities", [(full, none)], [rest])

    assert database.what == "Airflow: processor time of PostgreSQL, a full run of 100 entities"
    assert (database.ours, database.peer, database.ratio) == ((3.0,), (0.5,), 6.0)
    assert (at_rest.ours, at_rest.unit) == ((10.0,), "%")
    # Less than at rest is no cost that something could be held against.
    assert (queue.ours, queue.peer, queue.against) == ((0.0,), (), "")
    assert [(each.ours, each.peer) for each in asked("100 entities", [(full, none)], [rest])] == [
        ((500.0,), (150.0,)),
        ((4.0,), (2.0,)),
        ((3.0,), (1.0,)),
        ((2.0,), (1.0,)),
        ((1.0,), (1.0,)),
        ((10.0,), ()),
    ]
