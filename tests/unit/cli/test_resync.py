"""`contexture resync`: what is asked of Airflow, and what is said when it can't be asked."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import httpx
import pytest

from builders.outboxes import outbox, publication, records
from contexture.errors import ConfigurationError, RetriableError
from contexture.operations.airflow_client import AirflowClient, AirflowCredentials
from contexture.storage.home import Home

ACCESS = AirflowCredentials(url="http://airflow:8080", user="ops", password="hunter2")


class FakeApi:
    """Airflow's answers; keeps what it was asked."""

    def __init__(self, *, paused: bool = False, trigger: int = 200) -> None:
        self.paused, self.trigger = paused, trigger
        self.asked: list[tuple[str, str, object, str | None]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        self.asked.append((request.method, request.url.path, body, request.headers.get("Authorization")))
        if request.url.path == "/auth/token":
            allowed = body == {"username": "ops", "password": "hunter2"}
            return httpx.Response(201 if allowed else 401, json={"access_token": "abc"})
        if request.method == "GET":
            known = request.url.path in {"/api/v2/dags/resynchronise", "/api/v2/dags/publish_vehicles"}
            return httpx.Response(200 if known else 404, json={"is_paused": self.paused})
        return httpx.Response(self.trigger, json={"dag_run_id": "manual__1"})


def airflow(api: FakeApi, access: AirflowCredentials = ACCESS) -> AirflowClient:
    return AirflowClient(access, httpx.MockTransport(api))


def test_a_run_is_triggered_with_the_users_token():
    api = FakeApi()
    conf = {"publications": ["vehicles"], "mode": "full", "reason": "topics were deleted"}
    assert airflow(api).trigger("resynchronise", conf) == "manual__1"
    assert api.asked == [
        ("POST", "/auth/token", {"username": "ops", "password": "hunter2"}, None),
        ("POST", "/api/v2/dags/resynchronise/dagRuns", {"logical_date": None, "conf": conf}, "Bearer abc"),
    ]


def test_a_given_token_needs_no_login():
    api = FakeApi(paused=True)
    assert airflow(api, AirflowCredentials(url="http://airflow:8080", token="given")).is_paused("resynchronise")
    assert api.asked == [("GET", "/api/v2/dags/resynchronise", None, "Bearer given")]


def test_the_run_has_a_page():
    found = airflow(FakeApi(), AirflowCredentials(url="https://host/airflow", token="t")).page(
        "resynchronise", "manual__1"
    )
    assert found == "https://host/airflow/dags/resynchronise/runs/manual__1"


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (401, ConfigurationError, "refuses the token"),
        (403, ConfigurationError, "refuses the token"),
        (404, ConfigurationError, "has no DAG resynchronise"),
        (422, ConfigurationError, "Airflow responded with 422"),
        (503, RetriableError, "Airflow responded with 503"),
    ],
)
def test_refusals_are_reported_by_their_intent(status, error, says):
    access = AirflowCredentials(url="http://airflow:8080", token="very-secret")
    with pytest.raises(error, match=says) as raised:
        airflow(FakeApi(trigger=status), access).trigger("resynchronise", {})
    assert "very-secret" not in f"{raised.value}{access!r}"


def test_a_wrong_password_is_not_shown():
    access = AirflowCredentials(url="http://airflow:8080", user="ops", password="wrong-one")
    with pytest.raises(ConfigurationError, match="refuses ops") as raised:
        airflow(FakeApi(), access).is_paused("resynchronise")
    assert "wrong-one" not in f"{raised.value}{access!r}"


@pytest.fixture(autouse=True)
def no_airflow(monkeypatch):
    for name in ("URL", "TOKEN", "USER", "PASSWORD"):
        monkeypatch.delenv(f"CONTEXTURE_AIRFLOW_{name}", raising=False)


def test_without_an_address_it_says_what_to_set(contexture):
    done = contexture("resync", "vehicles", "--reason", "topics were deleted")
    assert done.code == 2
    assert done.err == (
        "error: CONTEXTURE_AIRFLOW_URL is not the address of Airflow. Next: set it to the UI's address, such as "
        "http://127.0.0.1:8080, and CONTEXTURE_AIRFLOW_TOKEN, or CONTEXTURE_AIRFLOW_USER and "
        "CONTEXTURE_AIRFLOW_PASSWORD\n"
    )


def test_without_a_user_it_says_what_to_set(contexture, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_AIRFLOW_URL", "http://127.0.0.1:8080")
    done = contexture("resync", "vehicles", "--reason", "x")
    assert (done.code, "Airflow has no login for this request" in done.err) == (2, True)


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://host", "http://ops:hunter2@host:8080"])
def test_an_address_of_another_kind_or_with_a_password_is_refused(contexture, monkeypatch, url):
    monkeypatch.setenv("CONTEXTURE_AIRFLOW_URL", url)
    done = contexture("resync", "vehicles", "--reason", "x")
    assert done.code == 2
    assert "hunter2" not in done.err


def test_an_airflow_that_is_away_gives_exit_code_3(contexture, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_AIRFLOW_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CONTEXTURE_AIRFLOW_TOKEN", "t")
    done = contexture("resync", "vehicles", "--reason", "x")
    assert done.code == 3
    assert "Airflow at http://127.0.0.1:9 did not respond: ConnectError" in done.err


class Handler(BaseHTTPRequestHandler):
    """The same answers on a socket; `resynchronise` runs, and what is asked about is in `paused` or it isn't."""

    paused: ClassVar[set[str]] = set()
    triggered: ClassVar[list[object]] = []

    def answer(self, document: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def do_GET(self) -> None:
        self.answer({"is_paused": self.path.rsplit("/", 1)[1] in self.paused})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.triggered.append(json.loads(body)["conf"])
        self.answer({"dag_run_id": "manual__1"})

    def log_message(self, *ignored: object) -> None:
        return


@pytest.fixture
def server(monkeypatch):
    Handler.paused, Handler.triggered = set(), []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{running.server_port}"
        monkeypatch.setenv("CONTEXTURE_AIRFLOW_URL", url)
        monkeypatch.setenv("CONTEXTURE_AIRFLOW_TOKEN", "t")
        yield url
        running.shutdown()


def test_the_command_starts_the_runs_and_names_those_left_out(contexture, server):
    Handler.paused = {"publish_city"}
    done = contexture("resync", "vehicles", "city", "vehicles", "--reason", "topics were deleted")
    assert done.code == 0
    assert done.out == (
        f"started resynchronise for vehicles, city (full): {server}/dags/resynchronise/runs/manual__1\npublish_city "
        "is paused and left out; it catches up by its own mode when it is resumed, or in full if it reads a registry "
        "and a full run was requested\n"
    )
    assert Handler.triggered == [
        {"publications": ["vehicles", "city"], "mode": "full", "reason": "topics were deleted"}
    ]


def test_json_names_the_run(contexture, server):
    done = contexture("resync", "vehicles", "--reason", "x", "--mode", "changes", "--json")
    assert json.loads(done.out) == {
        "dag": "resynchronise",
        "run": "manual__1",
        "publications": ["vehicles"],
        "mode": "changes",
        "paused": [],
    }


def test_a_paused_resynchronise_is_not_asked_to_run(contexture, server):
    Handler.paused = {"resynchronise"}
    done = contexture("resync", "vehicles", "--reason", "x")
    assert (done.code, Handler.triggered) == (2, [])
    assert "the DAG resynchronise is paused. Next: resume it" in done.err


@pytest.mark.parametrize(
    "arguments", [[], ["vehicles"], ["vehicles", "--reason", ""], ["a", "--reason", "b", "--mode", "x"]]
)
def test_names_a_reason_and_a_known_mode_are_needed(contexture, arguments):
    assert contexture("resync", *arguments).code == 2


def test_an_outbox_is_sent_again_by_a_run_where_airflow_is_known(contexture, server, tmp_path, monkeypatch):
    monkeypatch.setenv("CONTEXTURE_HOME", str(tmp_path))
    storage = Home(str(tmp_path))
    outbox(storage, publication(), 1, [records("car1")], name="abcd1234")
    storage.publication("vehicles").outboxes.set_status("abcd1234", "approved", reason="good")
    done = contexture("outbox", "retry", "abcd", "--reason", "the broker is back")
    assert done.out == (
        "0 failed sends are cleared, and a run was started that sends it first: "
        f"{server}/dags/publish_vehicles/runs/manual__1\n"
    )
    assert Handler.triggered == [{"reason": "the broker is back"}]
