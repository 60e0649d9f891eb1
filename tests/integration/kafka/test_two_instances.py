"""Two instances with separate homes and tables share only Kafka: each registry transaction is on the topic once."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

import pytest

from contexture.kafka import ClientSettings, read_committed
from contexture.monitoring import RunTables, TransactionStatus
from contexture.monitoring.history import TransactionFilter
from contexture.sending import Ledger, SenderNames
from contexture.storage.home import Home
from contexture_sandbox.kafka import EmbeddedKafka

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PROCESS = Path(__file__).with_name("instance_process.py")
_spec = importlib.util.spec_from_file_location("instance_process", PROCESS)
assert _spec is not None
assert _spec.loader is not None
instance_process = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(instance_process)


class RunningInstance:
    """Runs one instance to its end, after killing it inside of transactions as often as asked."""

    def __init__(self, kafka: EmbeddedKafka, home: Path, name: str, *, last: int, seed: int, lag: float) -> None:
        self.home = home
        self.arguments = [kafka.bootstrap_servers, str(home), name, name, str(last), str(seed), str(lag)]
        self.random = random.Random(seed)
        self.kills = 0
        self.was_killed = Event()
        self.said: Counter[str] = Counter()

    def run(self, kills: int) -> None:
        for _ in range(kills):
            self.kill_inside()
        with self.start(pause_seconds=0.02) as process:
            said = process.communicate(timeout=800)[0].decode().split()
        self.said.update(said)
        assert said[-1:] == ["done"], f"the instance ended with {said[-3:]}"

    def kill_inside(self) -> None:
        with self.start(pause_seconds=0.15) as process:
            assert process.stdout is not None
            inside = self.random.randint(1, 3)
            for line in process.stdout:
                self.said[line.decode().strip()] += 1
                inside -= line == b"inside\n"
                if not inside:
                    process.kill()
                    self.kills += 1
                    self.was_killed.set()
                    break

    def start(self, pause_seconds: float) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(PROCESS), *self.arguments, str(pause_seconds)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)


def published(
    kafka: EmbeddedKafka, folder: Path, *, last: int, seed: int, lags: tuple[float, float], kills: tuple[int, int]
) -> tuple[RunningInstance, RunningInstance]:
    """Both instances, after both are at the end of the log; each is killed so often, and lags so many seconds a run."""
    name = f"codelists-{uuid4().hex[:8]}"
    first = RunningInstance(kafka, folder / "first", name, last=last, seed=seed, lag=lags[0])
    second = RunningInstance(kafka, folder / "second", name, last=last, seed=seed + 1, lag=lags[1])
    threads = [Thread(target=each.run, args=(count,)) for each, count in zip((first, second), kills, strict=True)]
    threads[0].start()
    # Otherwise a busy machine may let the second one send everything before the first one is inside.
    assert not kills[0] or first.was_killed.wait(120)
    threads[1].start()
    for thread in threads:
        thread.join()
    settings = ClientSettings.from_extra(kafka.client_settings())
    assert_each_transaction_once_and_in_order(settings, name, last)
    for each in (first, second):
        assert_instance_knows_it(each.home, name, last)
    return first, second


def assert_each_transaction_once_and_in_order(settings: ClientSettings, name: str, last: int) -> None:
    found = [
        (record.key, record.value, dict(record.headers)["contexture_registry_transaction"])
        for record in read_committed(settings, [name])
    ]
    log = instance_process.registry_log(last)
    assert found == [(key, value, b"%d" % each.id) for each in log for key, value in each.records()]
    entry = Ledger(settings, SenderNames(name)).read(0)
    assert entry is not None
    assert entry.source_place == (log[-1].id, log[-1].deletions)


def assert_instance_knows_it(home: Path, name: str, last: int) -> None:
    storage = Home(str(home))
    assert storage.publication(name).state.pointer().watermark == str(last)
    assert {status.status for status in storage.publication(name).outboxes.all()} <= {"concluded", "rejected"}
    store = RunTables.of_home(str(home))
    assert store is not None
    sent = store.transactions(name, which=TransactionFilter(status=TransactionStatus.SENT), limit=1_000)
    log = instance_process.registry_log(last)
    assert {(row.source_transaction, row.source_deletions) for row in sent} == {
        (each.id, each.deletions) for each in log
    }


def test_two_instances_send_each_transaction_once_while_one_is_killed(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    ahead, behind = published(kafka, tmp_path, last=24, seed=7, lags=(0.0, 1.0), kills=(2, 0))
    # On a busy machine the other one may send the rest before the second kill.
    assert ahead.kills >= 1
    assert behind.said["ran"] > 0


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [11, 23])
@pytest.mark.parametrize(
    ("lags", "kills"), [((0.0, 1.0), (4, 0)), ((0.05, 0.05), (2, 2))], ids=["one lags", "both meet"]
)
def test_two_instances_send_each_transaction_once_whatever_is_killed_when(
    kafka: EmbeddedKafka, tmp_path: Path, seed: int, lags: tuple[float, float], kills: tuple[int, int]
) -> None:
    first, second = published(kafka, tmp_path, last=45, seed=seed, lags=lags, kills=kills)
    assert (first.kills, second.kills) == kills
