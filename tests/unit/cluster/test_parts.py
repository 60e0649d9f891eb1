"""The parts of the cluster that can be looked at without starting one."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from contexture.errors import RetriableError
from contexture.java.runtime import Java
from contexture.publications import load_publications
from contexture_sandbox.stack import project_folder
from tools.cluster import object_store
from tools.cluster.accounts import Account, unprivileged
from tools.cluster.evidence import variables
from tools.cluster.moments import await_found, descendants, memory_mib, owner_of
from tools.cluster.postgres import STARTING, PostgresServer
from tools.cluster.redis import RedisServer
from tools.cluster.scenario import prepare
from tools.cluster.spark import SparkFolders, SparkStandalone


def test_every_topic_of_the_demos_publications_gets_three_copies(tmp_path: Path) -> None:
    for file in (project_folder() / "include" / "publications").glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())

    prepare(tmp_path)

    copies = {each.name: each.topics.replication_factor for each in load_publications(tmp_path)}
    assert copies == {"vehicles": 3, "city": 3, "structures": 3}


def test_a_command_for_another_user_dies_with_its_parent_all_the_same() -> None:
    assert Account(65534, 65533).command(["postgres", "-D", Path("data")]) == [
        *("setpriv", "--reuid=65534", "--regid=65533", "--clear-groups", "--pdeathsig", "KILL"),
        *("--", "postgres", "-D", "data"),
    ]


def test_who_is_not_root_stays_who_they_are() -> None:
    assert Account().command(["postgres"]) == ["postgres"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become another user")
def test_root_becomes_a_user_without_its_rights() -> None:
    user = unprivileged().user
    assert user is not None
    assert user > 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become another user")
def test_the_other_user_gets_a_folder_that_it_can_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    account = unprivileged()
    folder = account.folder("contexture-try-")
    try:
        command = account.command(["touch", folder / "mine"])
        assert subprocess.run(command, check=False).returncode == 0
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        shutil.rmtree(folder)


def test_the_queues_password_is_in_no_repr_and_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("tools.cluster.redis._program", lambda: Path("redis-server"))
    monkeypatch.setattr("tools.cluster.redis.start_server", lambda name, words, options, port: started.append(words))
    server = RedisServer(tmp_path / "redis", tmp_path / "redis.log")
    server.__enter__()
    file = tmp_path / "redis" / "redis.conf"
    (password,) = re.findall(r"requirepass (\S+)", file.read_text())

    assert f":{password}@127.0.0.1:{server.port}/0" in server.url
    assert password not in " ".join(map(str, started[0]))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "bind 127.0.0.1\n" in file.read_text()


def test_a_database_whose_port_answers_before_it_is_ready_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AwayError(Exception):
        pass

    answers: list[object] = [AwayError(f"FATAL:  {STARTING}"), "connection", AwayError("password refused")]

    def connect(address: str, connect_timeout: int) -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    driver = ModuleType("psycopg2")
    vars(driver).update(OperationalError=AwayError, connect=connect)
    monkeypatch.setitem(sys.modules, "psycopg2", driver)
    monkeypatch.setattr("tools.cluster.postgres.unprivileged", Account)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server = PostgresServer(tmp_path / "postgres.log")

    assert await_found(server._connected, "PostgreSQL", 90) == "connection"
    with pytest.raises(AwayError, match="password refused"):
        server._connected()


def test_a_master_whose_page_opens_before_it_knows_its_workers_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = {"workers": [{"state": "ALIVE"}, {"state": "ALIVE"}]}
    answers = iter(
        [
            httpx.Response(404, html="<html>Not found</html>"),
            httpx.Response(200, html="<html>Spark</html>"),
            httpx.Response(200, json={"workers": [{"state": "ALIVE"}, {"state": "UNKNOWN"}]}),
            httpx.Response(200, json=alive),
        ]
    )

    def get(address: str, timeout: float) -> httpx.Response:
        answer = next(answers)
        answer.request = httpx.Request("GET", address)
        return answer

    monkeypatch.setattr("tools.cluster.spark.httpx.get", get)
    folders = SparkFolders(tmp_path, tmp_path, tmp_path, tmp_path)
    spark = SparkStandalone(folders, Java(tmp_path, tmp_path, 17, "PATH"), {})

    assert [spark._all_alive() for _ in range(4)] == [False, False, False, True]


def test_every_package_of_the_object_store_is_pinned_by_hash() -> None:
    text = object_store.PINS.read_text()
    packages = re.findall(r"(?m)^([a-z0-9.-]+)==[^\\]+\\$", text)
    assert "moto" in packages
    assert len(packages) == len(re.findall(r"(?m)^[a-z]", text))
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text)) >= len(packages)


def test_a_process_is_found_below_the_one_that_started_it() -> None:
    script = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with subprocess.Popen([sys.executable, "-c", f"{script}; time.sleep(600)"]) as parent:
        try:
            child = await_found(lambda: min(descendants(parent.pid) - {parent.pid}, default=None), "child", 90)
            assert owner_of(child, {"other": 999_999_999, "ours": parent.pid}) == "ours"
            assert memory_mib(parent.pid) > memory_mib(child) > 0
            assert owner_of(os.getppid(), {"ours": parent.pid}) is None
        finally:
            for process in descendants(parent.pid):
                os.kill(process, 9)


def test_what_does_not_come_is_an_error_that_can_be_tried_again() -> None:
    with pytest.raises(RetriableError, match=r"no comet within 0 s"):
        await_found(lambda: None, "comet", 0.01)


def test_variables_are_as_before_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "before")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)

    with variables({"AWS_REGION": "within", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}):
        within = (os.environ["AWS_REGION"], os.environ["AWS_ENDPOINT_URL"])

    assert within == ("within", "http://127.0.0.1:1")
    assert (os.environ["AWS_REGION"], "AWS_ENDPOINT_URL" in os.environ) == ("before", False)
