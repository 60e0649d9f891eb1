"""Airflow's database is lost, and the operational tables with it: new ones beside the old files and Kafka go on.

Later an older copy of Airflow's database comes back in the place of the new one, and that goes on too.

One installation for all tests of this file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contexture.monitoring import RunTables
from contexture.monitoring.rows import TransactionRow
from contexture_sandbox.airflow.client import DagRun
from contexture_sandbox.demo.comparison import Comparison, compare
from e2e.buses import DAG, describe, drive, lines_by_bus, records
from e2e.installation import Installation, installation_below

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(7200)]

PATIENCE_SECONDS = 1500.0
YEARLY = '"0 0 1 1 *"'
"""Airflow runs the last interval once, and there is no other while the test lasts."""


@dataclass
class Story:
    """What was seen of the database before, and of the new one."""

    platform: Installation
    before: list[DagRun]
    after: list[DagRun]
    sent_before: list[TransactionRow]
    sent_after: list[TransactionRow]
    rebuilt: str
    with_copy: DagRun
    known_to_copy: set[str]
    comparison: Comparison


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Two databases of one installation, and the first one again; they run once for all tests."""
    folder = tmp_path_factory.mktemp("lost-airflow")
    with installation_below(folder, entities=0) as platform:
        before = with_first_database(platform)
        sent = read_sent(platform)
        lose_databases(platform, folder / "home", folder / "copy")
        platform.stack.airflow.start()
        after = with_new_database(platform)
        rebuilt = platform.contexture("tables", "rebuild", "buses")
        assert rebuilt.returncode == 0, rebuilt.stderr
        sent_after = read_sent(platform)
        restored = with_copy(platform, folder / "copy")
        known = {run.run_id for run in platform.runs(DAG)}
        found = compare(platform.storage, "buses", platform.stack.kafka.client_settings())
        yield Story(platform, before, after, sent, sent_after, rebuilt.stdout, restored, known, found)


def with_first_database(platform: Installation) -> list[DagRun]:
    """A first load by the schedule, and a change by hand."""
    drive(platform, one=1, two=2, three=3)
    describe(platform, schedule=YEARLY, on_startup="none")
    platform.stack.client.await_dags([DAG], seconds=PATIENCE_SECONDS)
    loaded = platform.finished(DAG, number=1, seconds=PATIENCE_SECONDS)
    drive(platform, one=11)
    platform.stack.client.trigger(DAG)
    return [loaded, platform.finished(DAG, number=2, seconds=PATIENCE_SECONDS)]


def lose_databases(platform: Installation, home: Path, copy: Path) -> None:
    """Ends Airflow and takes away what is in databases; meanwhile a bus changes and another one comes."""
    platform.stack.airflow.stop()
    for file in home.glob("operations.sqlite*"):
        file.unlink()
    move_database(platform, copy)
    # Not from the beginning on: the first start might still be looking when the file comes.
    describe(platform, schedule=YEARLY, on_startup="pending")
    drive(platform, two=22, four=4)


def move_database(platform: Installation, folder: Path) -> None:
    folder.mkdir()
    for file in platform.stack.settings.folder.glob("airflow.db*"):
        shutil.move(file, folder / file.name)
    assert (folder / "airflow.db").is_file()


def with_new_database(platform: Installation) -> list[DagRun]:
    """What Airflow does by itself: the resynchronisation of each start, and the last interval, unknown to it.

    Whichever of them comes first finds what has changed.
    """
    prefixes = ("resync__", "scheduled__")
    found = [platform.finished(DAG, prefix=prefix, number=1, seconds=PATIENCE_SECONDS) for prefix in prefixes]
    drive(platform, three=33)
    platform.stack.client.trigger(DAG)
    return [*found, platform.finished(DAG, number=3, seconds=PATIENCE_SECONDS)]


def with_copy(platform: Installation, copy: Path) -> DagRun:
    """Airflow on the database of before, which knows nothing of the runs since."""
    platform.stack.airflow.stop()
    move_database(platform, copy.with_name("newer"))
    for file in copy.iterdir():
        shutil.move(file, platform.stack.settings.folder / file.name)
    drive(platform, four=44)
    platform.stack.airflow.start()
    return platform.finished(DAG, prefix="resync__", number=1, seconds=PATIENCE_SECONDS)


def read_sent(platform: Installation) -> list[TransactionRow]:
    """Returns the transactions that the operational tables contain, in the order of sending."""
    store = RunTables.of_home(platform.storage.root)
    assert store is not None
    rows = store.transactions("buses")
    store.close()
    order = [each.outbox for each in platform.storage.publication("buses").outboxes.all()]
    return sorted(rows, key=lambda row: (order.index(row.outbox), row.shard, row.number))


def timeless(rows: list[TransactionRow]) -> list[TransactionRow]:
    """Leaves out when transactions were sent, because the ledger has that from another clock."""
    return [replace(row, updated_at=datetime.min.replace(tzinfo=UTC)) for row in rows]


def test_what_airflow_knew_of_runs_is_gone(story: Story) -> None:
    assert [each.state for each in story.before] == ["success", "success"]
    first, second = story.before
    # The last interval has the same name as before, but its run is another one.
    assert story.after[1].run_id == first.run_id
    assert story.after[1].started_at != first.started_at
    assert second.run_id not in {run.run_id for run in story.after}


def test_the_new_one_resynchronises_by_itself_and_goes_on(story: Story) -> None:
    assert [each.state for each in story.after] == ["success", "success", "success"]
    assert story.after[0].run_id.startswith("resync__asset_triggered__")


def test_numbers_go_on_and_only_what_differs_is_sent(story: Story) -> None:
    sent = [(each.mode, each.sequence, each.records) for each in story.platform.published("buses")]
    assert sent[:2] == [("full", 1, 3), ("changes", 2, 1)]
    assert sent[2:5] == [("changes", 3, 2), ("changes", 4, 0), ("changes", 5, 1)]


def test_an_older_copy_of_the_database_goes_on_behind_what_it_does_not_know(story: Story) -> None:
    assert story.with_copy.state == "success"
    assert {run.run_id for run in story.before} <= story.known_to_copy
    assert not {story.after[0].run_id, story.after[2].run_id} & story.known_to_copy
    sent = [(each.mode, each.sequence, each.records) for each in story.platform.published("buses")]
    assert sent[5:] == [("changes", 6, 1)]


def test_every_change_is_in_kafka_once_and_in_order(story: Story) -> None:
    received = records(story.platform, "buses")
    assert lines_by_bus(received) == {"one": [1, 11], "two": [2, 22], "three": [3, 33], "four": [4, 44]}
    assert story.comparison.equal
    assert (story.comparison.prepared, story.comparison.read) == (8, 8)


def test_the_rebuilt_operational_tables_contain_all_that_was_sent(story: Story) -> None:
    assert sum(row.records for row in story.sent_before) == 4
    assert story.rebuilt.startswith(f"buses: {len(story.sent_after)} transactions sent, 0 pending, 0 shards")
    of_before = story.sent_after[: len(story.sent_before)]
    assert timeless(of_before) == timeless(story.sent_before)
    assert all(
        abs(again.updated_at - lost.updated_at) < timedelta(minutes=5)
        for again, lost in zip(of_before, story.sent_before, strict=True)
    )
    assert sum(row.records for row in story.sent_after) == 7
