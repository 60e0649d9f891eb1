"""A new user's hour: own broker and Kafka, a publication, an expectation, an alert, a stopped producer, the way back.

What is typed is what the documentation says, taken from its pages; only ports, passwords and addresses are others. The
Kafka is one with users and access control, and the user may do what `docs/reference/kafka-connection.md` lists.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest

from builders.kafka_rights import allow, take
from builders.pages import block
from builders.terminal import Terminal
from contexture.errors import ConfigurationError
from contexture.operations.airflow_client import AirflowClient, AirflowCredentials
from contexture_sandbox.kafka import EmbeddedKafka
from contexture_sandbox.listeners import Security
from contexture_sandbox.ports import free_port
from e2e.installation import PATIENCE_SECONDS, until
from fakes.mail_server import MailServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the documented commands need curl"),
]

ADD, EXPECT, ALERTS = "how-to/add-a-publication.md", "how-to/add-an-expectation.md", "how-to/get-alerts.md"
USER, PASSWORD = "city", "hush-of-the-city"
POLL_SECONDS = 2.0
STATION1 = '["city","/transport","station1","BikeHireDockingStation"]'


class NewUser:
    """Who types what the pages say, beside a platform that was started with `make up`."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, mails: MailServer) -> None:
        self.folder, self.kafka, self.mails = folder, kafka, mails
        self.broker_port = free_port()
        self.first, self.second = Terminal(folder), Terminal(folder)

    def own(self, documented: str) -> str:
        """The text of a page with this user's addresses."""
        return documented.replace("1026", str(self.broker_port)).replace("127.0.0.1:9092", self.kafka.bootstrap_servers)

    def connection(self, name: str, **others: object) -> None:
        """Gives a connection of the first terminal what is this user's own."""
        variable = f"AIRFLOW_CONN_{name.upper()}"
        given = json.loads(self.first.variables[variable])
        # Both are mappings, as JSON has them: nothing says so to the checker.
        extra = {**given.get("extra", {}), **others.pop("extra", {})}  # type: ignore[dict-item]
        self.first.variables[variable] = json.dumps({**given, **others, "extra": extra})

    def append(self, text: str) -> None:
        """Writes at the end of the publication's file."""
        with (self.folder / "city" / "bikes.yaml").open("a", encoding="utf-8") as file:
            file.write(text)

    def run_ended(self) -> None:
        """Waits until no run of the publication is under way."""
        until(lambda: self._is_idle() or None, "end of the run", PATIENCE_SECONDS)

    def dag_is_there(self) -> None:
        """Waits for Airflow to have seen the file."""
        until(lambda: self._is_known() or None, "DAG publish_bikes", PATIENCE_SECONDS)

    def has_started(self) -> bool:
        """Whether Airflow is done with what its start sets off."""
        time.sleep(POLL_SECONDS)
        url, who = self.second.variables["CONTEXTURE_AIRFLOW_URL"], ("USER", "PASSWORD")
        user, password = (self.second.variables[f"CONTEXTURE_AIRFLOW_{name}"] for name in who)
        token = httpx.post(f"{url}/auth/token", json={"username": user, "password": password}, timeout=60).json()
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        runs = httpx.get(f"{url}/api/v2/dags/resynchronise/dagRuns", headers=headers, timeout=60).json()
        return any(run["state"] == "success" for run in runs.get("dag_runs", []))

    def _is_idle(self) -> bool:
        time.sleep(POLL_SECONDS)
        path = "/api/v2/dags/publish_bikes/dagRuns?state=running&state=queued"
        return not self._airflow.request("GET", path, "publish_bikes").json()["dag_runs"]

    def _is_known(self) -> bool:
        time.sleep(POLL_SECONDS)
        try:
            return not self._airflow.is_paused("publish_bikes")
        except ConfigurationError:
            return False

    @cached_property
    def _airflow(self) -> AirflowClient:
        return AirflowClient(AirflowCredentials.from_environment(self.second.variables))


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    """The city's Kafka, whose administrator gives rights."""
    security = Security("SASL_PLAINTEXT", users={USER: PASSWORD}, access_control=True)
    with EmbeddedKafka(security=security) as cluster:
        # The list of docs/reference/kafka-connection.md.
        for topics in ("bikes", "contexture.*"):
            allow(cluster, f"User:{USER}", "TOPIC", topics, "CREATE", "DESCRIBE", "WRITE", "READ", "DESCRIBE_CONFIGS")
        allow(cluster, f"User:{USER}", "TRANSACTIONAL_ID", "tx*", "DESCRIBE", "WRITE")
        allow(cluster, f"User:{USER}", "GROUP", "contexture", "READ")
        yield cluster


def test_a_new_user_s_hour(command: Callable[..., Any], kafka: EmbeddedKafka, tmp_path: Path) -> None:
    with MailServer() as mails:
        user = NewUser(tmp_path, kafka, mails)
        broker(user, command)
        up = platform(user, command)
        first_publication(user)
        expectation_and_alert(user)
        stopped = producer_stops(user)
        way_back(user, stopped)
        assert up.interrupt(180) == 0, up.text[-3000:]
    assert (tmp_path / "city" / "bikes.yaml").is_file(), "files of publications stay"


def broker(user: NewUser, command: Callable[..., Any]) -> None:
    """Starts the context broker that the page offers, and fills it."""
    line = next(each for each in block(ADD, "context-broker --port").splitlines() if "context-broker" in each)
    words = shlex.split(user.own(line))
    assert words[1:3] == ["-m", "contexture_sandbox"]
    command(*words[3:]).await_text("Ctrl-C ends it", seconds=PATIENCE_SECONDS)
    user.first.run(user.own(block(ADD, "curl -sS")))


def platform(user: NewUser, command: Callable[..., Any]) -> Any:
    """Connections, the folder, and `make up` in the first terminal; the printed line in the second."""
    user.first.set(user.own(block(ADD, "AIRFLOW_CONN_CITY_BROKER")))
    user.first.set(block(ALERTS, "AIRFLOW_CONN_CONTEXTURE_MAIL"))
    secured = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    user.connection("city_kafka", login=USER, password=PASSWORD, extra=secured)
    user.connection(
        "contexture_mail",
        host="127.0.0.1",
        port=user.mails.port,
        login="",
        password="",
        extra={"disable_tls": True},
    )
    folder, _, last = block(ADD, "make up").strip().rpartition("\n")
    assert last == "make up"
    user.first.set(folder)
    small = ("--home", str(user.folder / "home"), "--entities", "0", "--structures", "0")
    up = command("up", *small, variables=user.first.variables)
    up.await_text("Ctrl-C ends all of it", seconds=PATIENCE_SECONDS)
    pasted = re.search(r"commands +(\. \S+)", up.text)
    assert pasted is not None
    user.second.set(pasted[1])
    user.second.run(block(ADD, "contexture connection test city_broker"))
    return up


def first_publication(user: NewUser) -> None:
    """The file, a check, a dry run, a run, and the records in Kafka."""
    # A start of Airflow starts what has never run; a person who reads on takes longer than that.
    until(lambda: user.has_started() or None, "end of the start", PATIENCE_SECONDS)
    (user.folder / "city" / "bikes.yaml").write_text(block(ADD, "name: bikes"))
    checked = user.second.run(block(ADD, "contexture check city/bikes.yaml")).stdout
    assert "city/bikes.yaml: right" in checked
    assert "2 entities" in checked
    user.dag_is_there()
    user.second.run(block(ADD, "dry_run"))
    user.run_ended()
    (dry,) = user.second.json("contexture outbox list --all")["outboxes"]
    assert (dry["status"], dry["records"]) == ("rejected", 2)

    *_, run = (line for line in block(ADD, "airflow dags trigger publish_bikes\n").splitlines() if line)
    user.second.run(run)
    user.run_ended()
    user.second.run(block(ADD, "contexture status bikes"))
    found = user.second.json("contexture topics read --publication bikes")
    assert found["connection"] == "city_kafka"
    values = {each["key"]: json.loads(each["value"])["id"] for each in found["records"]}
    assert sorted(values.values()) == ["station1", "station2"]
    assert values[STATION1] == "station1"


def expectation_and_alert(user: NewUser) -> None:
    """What the two pages say to write into the file."""
    heading, expectations = block(EXPECT, "expect_column_values_to_be_between").split("\n", 1)
    assert heading == "quality:", "the last section of the file, in which it belongs"
    user.append(expectations)
    user.append(block(ALERTS, "published_within_minutes"))
    user.second.run("contexture check city/bikes.yaml")


def producer_stops(user: NewUser) -> str:
    """The administrator takes a right away; the next change can't be sent, and the user hears of it."""
    take(user.kafka, f"User:{USER}", "bikes", "WRITE")
    url = f"http://127.0.0.1:{user.broker_port}/v2/entities/station1/attrs/availableBikeNumber/value"
    headers = "-H 'Fiware-Service: city' -H 'Fiware-ServicePath: /transport' -H 'Content-Type: text/plain'"
    user.first.run(f"curl -sS -X PUT {url} {headers} -d 61")
    user.second.run("airflow dags trigger publish_bikes")
    user.run_ended()

    mail = until(lambda: next(iter(user.mails.mails), None), "mail", PATIENCE_SECONDS)
    assert mail.to == ("ops@example.org",)
    assert str(mail.message["Subject"]).startswith("[Contexture] bikes: sending is stopped")
    assert "TOPIC_AUTHORIZATION_FAILED" in mail.body
    user.second.run("contexture status bikes", code=1)
    (pending,) = user.second.json("contexture outbox list")["outboxes"]
    assert (pending["status"], pending["records"]) == ("approved", 1)
    story = user.second.run(f"contexture outbox show {pending['outbox'][:12]}").stdout
    assert "expectation failed, warning" in story, "61 bikes are more than 60"
    assert "start publish_bikes: it sends this outbox first" in story
    return str(pending["outbox"])


def way_back(user: NewUser, outbox: str) -> None:
    """The permission is corrected, as the page says, and a new run sends what waited."""
    allow(user.kafka, f"User:{USER}", "TOPIC", "bikes", "WRITE")
    user.second.run("airflow dags trigger publish_bikes")
    user.run_ended()
    assert user.second.json(f"contexture outbox show {outbox}")["status"] == "concluded"
    user.second.run("contexture status bikes")
    (newest,) = user.second.json("contexture topics read --publication bikes --last 1")["records"]
    assert (newest["key"], json.loads(newest["value"])["availableBikeNumber"]["value"]) == (STATION1, 61)
    user.second.run("contexture verify bikes")
