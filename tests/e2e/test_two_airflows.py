"""Two Airflows with databases, storages and tables of their own share a registry and Kafka, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from contexture.kafka import read_committed
from contexture.monitoring import RunTables, TransactionStatus
from contexture.monitoring.history import TransactionFilter
from contexture.operations.pools import POOLS
from contexture.storage.home import Home
from contexture_sandbox.airflow import AirflowClient, AirflowProcesses
from contexture_sandbox.airflow.client import DagRun
from contexture_sandbox.ports import free_port
from contexture_sandbox.registry import seed_codelist
from contexture_sandbox.stack import Stack
from e2e.installation import PATIENCE_SECONDS, installation_below

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

DAG = "publish_codelists"
ROUNDS = 4
FILE = """\
name: codelists
schedule: null
source: {kind: sdmx, connection: registry, select: "Codelist=*:*(*)"}
topics: {topics: codelists}
resync: {on_startup: none}
"""


class Instance:
    """One Airflow and its home."""

    def __init__(self, client: AirflowClient, home: Path) -> None:
        self.client = client
        self.home = home
        client.await_dags([DAG])

    def begin(self) -> DagRun:
        return self.client.trigger(DAG)

    def end(self, run: DagRun) -> str:
        return self.client.await_run(run.dag_id, run.run_id, seconds=PATIENCE_SECONDS).state

    def sent_transactions(self) -> list[tuple[int | None, bool]]:
        """Returns what its own tables contain as sent: the registry's ids, and whether they are deletions."""
        store = RunTables.of_home(str(self.home))
        assert store is not None
        rows = store.transactions("codelists", which=TransactionFilter(status=TransactionStatus.SENT), limit=100)
        return sorted((row.source_transaction, bool(row.source_deletions)) for row in rows)


@contextmanager
def another(stack: Stack, folder: Path) -> Iterator[Instance]:
    """A second Airflow beside a stack's, with the same sources, brokers and publication files."""
    settings = replace(stack.settings, folder=folder / "airflow", home=folder / "home", port=free_port())
    airflow = AirflowProcesses(settings, print)
    with ExitStack() as opened:
        client = AirflowClient(settings)
        opened.callback(client.close)
        airflow.before_schedule = lambda: client.make_pools((name, *pool) for name, pool in POOLS.items())
        opened.enter_context(airflow)
        yield Instance(client, folder / "home")


def test_each_transaction_of_the_registry_is_in_kafka_once_and_in_order(tmp_path: Path) -> None:
    with installation_below(tmp_path, entities=0, codelists=FILE) as platform:
        stack = platform.stack
        stack.registry.submit(seed_codelist(1, codes=1))
        with another(stack, tmp_path / "second") as second:
            first = Instance(stack.client, tmp_path / "home")
            assert [each.end(each.begin()) for each in (first, second)] == ["success", "success"]

            expected = []
            for number in range(2, 2 + ROUNDS):
                added = stack.registry.submit(seed_codelist(number, codes=1))
                # What it was like can be asked for by the millisecond.
                time.sleep(0.05)
                gone = stack.registry.delete([urn_of(stack, number)])
                expected += [(added.id, False), (gone.id, True)]
                # Both at once; the second one looks every other time only.
                looking = (first, second) if number % 2 else (first,)
                runs = [(each, each.begin()) for each in looking]
                # Who is overtaken fails, and its next run settles that.
                assert {each.end(run) for each, run in runs} <= {"success", "failed"}
            assert [each.end(each.begin()) for each in (second, first)] == ["success", "success"]

            records = list(read_committed(stack.kafka_settings(), ["codelists"]))

    ids = [int(dict(record.headers)["contexture_registry_transaction"]) for record in records]
    assert [(number, record.value is None) for number, record in zip(ids, records, strict=True)] == expected
    for each in (first, second):
        assert Home(str(each.home)).publication("codelists").state.pointer().watermark == str(expected[-1][0])
        assert each.sent_transactions() == expected


def urn_of(stack: Stack, number: int) -> str:
    (urn,) = [urn for urn in stack.registry.store.urns() if f":CL_{number:05}" in urn]
    return urn
