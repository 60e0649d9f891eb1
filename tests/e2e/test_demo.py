"""`make demo` and `make up`, with everything behind them real."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from pathlib import Path

import httpx
import pytest

from builders.pages import block, lines_not_printed
from builders.terminal import Terminal, behind_make
from e2e.processes import LOOPBACK, Process, alive, command_line, descendants, environment, listeners
from e2e.secrets_left import SecretWatch, filled_tables, forms, places_with

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


class Observer(threading.Thread):
    """Looks every half second at what a command has started and where that listens."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self.root = root
        self.processes: set[Process] = set()
        self.sockets: dict[tuple[str, int], str] = {}
        self.command_lines: set[str] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.5):
            now = descendants(self.root)
            self.processes |= now
            self.command_lines |= {command_line(process) for process in now}
            for place, process in listeners(now).items():
                self.sockets.setdefault(place, command_line(process))

    def end(self) -> None:
        self._ended.set()
        self.join()

    def left(self) -> dict[int, str]:
        """What still runs of all that was seen, by its number."""
        return {process.pid: command_line(process) for process in alive(self.processes)}


@pytest.mark.timeout(2400)
def test_the_demo_publishes_reads_back_equal_and_leaves_nothing_behind(command, tmp_path: Path) -> None:
    script = block("tutorial.md", "make demo")
    assert script == block("README.md", "make demo")
    demo = command(*of_the_sandbox(script), "--home", str(tmp_path / "home"))
    observer = Observer(demo.process.pid)
    observer.start()
    code = demo.process.wait(2200)
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
    assert [line for shown in shown_of_the_demo() for line in lines_not_printed(shown, demo.text)] == []

    outside = {place: line for place, line in observer.sockets.items() if place[0] not in LOOPBACK}
    assert outside == {}
    assert len(observer.sockets) >= 4, "the API, Kafka's listeners and both sources were seen"
    assert not [line for line in observer.command_lines if "CONTEXTURE_SOURCE_CONNECTION" in line]

    assert left_after(observer, tmp_path) == ({}, [])
    for publication in ("vehicles", "city", "structures"):
        assert list((tmp_path / "home" / publication / "report").glob("*/index.html"))


@pytest.mark.timeout(2400)
def test_up_shows_where_to_log_in_keeps_secrets_and_ends_with_ctrl_c(command, tmp_path: Path) -> None:
    script = block("tutorial.md", "make up")
    assert script == block("README.md", "make up")
    up = command(*of_the_sandbox(script), "--home", str(tmp_path / "home"), "--entities", "60")
    observer = Observer(up.process.pid)
    observer.start()
    up.await_text("Ctrl-C ends all of it", seconds=900)
    wanted = forms(secrets_of_connections(observer.processes))
    watch = SecretWatch(up.process.pid, tmp_path, wanted)
    watch.start()
    # The vehicles or the city: what the registry holds is only noted.
    first = await_file(tmp_path / "home", "[cv]*/state/CURRENT", seconds=900).parents[1].name
    watch.end()
    observer.end()
    (database,) = tmp_path.glob("contexture-*/airflow/airflow.db")

    assert "user admin   password " in up.text
    assert lines_not_printed(block("tutorial.md", "user admin"), up.text) == []
    assert {place for place in observer.sockets if place[0] not in LOOPBACK} == set()
    # What a shell needs for the same connections: for the user's own eyes, and gone with the rest.
    (own,) = tmp_path.glob("contexture-*/shell.env")
    assert own.stat().st_mode & 0o777 == 0o600
    assert watch.found <= {str(own)}, "no process list and no file of a moment held a token"
    assert watch.looks > 3
    assert {"xcom", "rendered_task_instance_fields", "log"} <= filled_tables(database)
    assert places_with(wanted, tmp_path) == [str(own)]
    assert not [line for line in observer.command_lines for form in wanted if form.decode() in line]

    type_in_a_second_terminal(up.text, tmp_path, first)
    assert up.interrupt(180) == 0, up.text[-3000:]
    assert left_after(observer, tmp_path) == ({}, [])


def shown_of_the_demo() -> tuple[str, ...]:
    """Returns what the pages show of the demo's output."""
    return (
        block("README.md", "all that was prepared"),
        block("tutorial.md", "nothing sent"),
        block("tutorial.md", "number-string"),
        block("tutorial.md", "Kafka was killed"),
        block("tutorial.md", "all that was prepared"),
    )


def left_after(observer: Observer, folder: Path, *, seconds: float = 60) -> tuple[dict[int, str], list[Path]]:
    """Processes and folders of a command that has ended which do not go either, though they are given some time."""
    deadline = time.monotonic() + seconds
    while True:
        left = observer.left(), [path for path in folder.iterdir() if path.name.startswith("contexture-")]
        if left == ({}, []) or time.monotonic() > deadline:
            return left
        time.sleep(0.5)


def of_the_sandbox(script: str) -> list[str]:
    """The words of a page's `make …` that the sandbox gets."""
    first, module, *words = behind_make(script)
    assert (first, module) == ("-m", "contexture_sandbox")
    return words


def type_in_a_second_terminal(printed: str, folder: Path, publication: str) -> None:
    """What the pages say to type beside `make up`, about a publication that has run."""
    pasted = re.search(r"commands +(\. \S+)", printed)
    assert pasted is not None
    terminal = Terminal(folder)
    terminal.set(pasted[1])
    shown = terminal.run(
        block("tutorial.md", "contexture quarantine show")
        .replace("--publication city", f"--publication {publication}")
        .replace("contexture doctor", "contexture doctor || true")
    ).stdout
    assert "last concluded: full run 1" in shown
    if shutil.which("curl") is None:
        return
    url, user, password = (terminal.variables[f"CONTEXTURE_AIRFLOW_{name}"] for name in ("URL", "USER", "PASSWORD"))
    who = {"username": user, "password": password}
    terminal.variables["TOKEN"] = httpx.post(f"{url}/auth/token", json=who, timeout=60).json()["access_token"]
    asked = block("how-to/inspect-publications.md", "curl -H").replace("https://airflow.example", url)
    assert publication in {each["name"] for each in json.loads(terminal.run(asked).stdout)["lines"]}
    report = block("how-to/report-data-quality.md", "curl -H").replace("https://airflow.example", url)
    terminal.run(report.replace("vehicles", publication))
    assert json.loads((folder / "report.json").read_text())["publication"] == publication
    # A connection that is not stored is tested as it is given; nothing listens there.
    tried = block("how-to/test-connections.md", "curl -X POST").replace("https://airflow.example", url)
    answer = json.loads(
        terminal.run(tried.replace("kafka_default", "not_stored").replace("broker-1", "127.0.0.1")).stdout
    )
    assert (answer["status"], "server 127.0.0.1:9092: failed" in answer["message"]) == (False, True)


def await_file(folder: Path, pattern: str, *, seconds: float) -> Path:
    """Waits for a file: here for the first run of some publication to be concluded."""
    deadline = time.monotonic() + seconds
    while not (found := sorted(folder.glob(pattern))):
        assert time.monotonic() < deadline, f"{folder / pattern} is not there after {seconds} s"
        time.sleep(1)
    return found[0]


def secrets_of_connections(processes: set[Process]) -> set[str]:
    """The secrets of the connections to sources and Kafka, from the environment of a process that has them."""
    found = set()
    for process in alive(processes):
        for variable in environment(process):
            name, _, value = variable.partition("=")
            if name in {"AIRFLOW_CONN_CONTEXT_BROKER", "AIRFLOW_CONN_REGISTRY"}:
                found.add(json.loads(value)["extra"]["headers"]["X-Auth-Token"])
            elif name == "AIRFLOW_CONN_KAFKA_DEFAULT":
                found.add(json.loads(value)["extra"]["ssl.key.password"])
    assert len(found) == 3, "a process has the connections"
    return found
