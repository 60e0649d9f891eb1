"""`make demo` and `make up`, with everything behind them real."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from e2e.processes import LOOPBACK, alive, command_line, descendants, environment, listeners

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


class Observer(threading.Thread):
    """Looks every half second at what a command has started and where that listens."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.pids: set[int] = set()
        self.sockets: dict[tuple[str, int], str] = {}
        self.command_lines: set[str] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.5):
            now = descendants(self.root)
            self.pids |= now
            self.command_lines |= {command_line(pid) for pid in now}
            for place, pid in listeners(now).items():
                self.sockets.setdefault(place, command_line(pid))

    def end(self) -> None:
        self._ended.set()
        self.join()


@pytest.mark.timeout(1500)
def test_the_demo_publishes_reads_back_equal_and_leaves_nothing_behind(command, tmp_path: Path) -> None:
    demo = command("demo", "--home", str(tmp_path / "home"))
    observer = Observer(demo.process.pid)
    observer.start()
    code = demo.process.wait(1400)
    observer.end()

    assert code == 0, demo.text[-6000:]
    assert "all that was prepared is in Kafka, once" in demo.text
    assert "Kafka was killed" in demo.text
    assert "1 quarantined (number-string 1)" in demo.text
    assert "1 tombstones" in demo.text
    assert "1 missing for the first time" in demo.text
    assert "skipped as outdated" in demo.text
    assert "100 structures noted, nothing sent" in demo.text
    assert "full: 100 read" in demo.text
    assert "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=CITY:DF_00009_9(1.0)" in demo.text
    assert "null: deleted" in demo.text

    outside = {place: line for place, line in observer.sockets.items() if place[0] not in LOOPBACK}
    assert outside == {}
    assert len(observer.sockets) >= 4, "the API, Kafka's listeners and both sources were seen"
    assert not [line for line in observer.command_lines if "CONTEXTURE_SOURCE_CONNECTION" in line]

    time.sleep(2)
    assert {pid: command_line(pid) for pid in alive(observer.pids)} == {}
    assert [path for path in tmp_path.iterdir() if path.name.startswith("contexture-")] == []
    for publication in ("vehicles", "city", "structures"):
        assert list((tmp_path / "home" / publication / "report").glob("*/index.html"))


@pytest.mark.timeout(900)
def test_up_shows_where_to_log_in_keeps_secrets_and_ends_with_ctrl_c(command, tmp_path: Path) -> None:
    up = command("up", "--home", str(tmp_path / "home"), "--entities", "60")
    observer = Observer(up.process.pid)
    observer.start()
    up.await_text("Ctrl-C ends all of it", seconds=300)
    await_file(tmp_path / "home" / "vehicles" / "state", "CURRENT", seconds=300)
    observer.end()
    token = source_token(observer.pids)
    (airflow,) = tmp_path.glob("contexture-*/airflow")

    assert "user admin   password " in up.text
    assert {place for place in observer.sockets if place[0] not in LOOPBACK} == set()
    assert files_with(token, airflow) == []
    assert files_with(token, tmp_path / "home") == []
    assert token not in up.text
    assert not [line for line in observer.command_lines if token in line]

    assert up.interrupt(180) == 0, up.text[-3000:]
    time.sleep(2)
    assert {pid: command_line(pid) for pid in alive(observer.pids)} == {}
    assert [path for path in tmp_path.iterdir() if path.name.startswith("contexture-")] == []


def await_file(folder: Path, name: str, *, seconds: float) -> None:
    """Waits for a file: here for the first run of a publication to be concluded."""
    deadline = time.monotonic() + seconds
    while not (folder / name).is_file():
        assert time.monotonic() < deadline, f"{folder / name} is not there after {seconds} s"
        time.sleep(1)


def source_token(pids: set[int]) -> str:
    """The token of the source's connection, from the environment of a process that has it."""
    for pid in alive(pids):
        for variable in environment(pid):
            if variable.startswith("AIRFLOW_CONN_CONTEXT_BROKER="):
                return json.loads(variable.split("=", 1)[1])["extra"]["headers"]["X-Auth-Token"]
    raise AssertionError("no process has the connection")


def files_with(secret: str, folder: Path) -> list[str]:
    """Files that hold the secret: logs, databases, reports, orders."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in found if secret.encode() in path.read_bytes()]
