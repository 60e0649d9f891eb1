"""Moving state on: little is written for few changes, files stay few, and nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.outboxes import publication
from builders.states import Held, approved, held, state_table
from contexture.storage.conclusion import conclude
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.home import Home
from contexture.storage.state import State, StatePointer
from contexture.storage.state_files import ROWS_IN_GROUP
from contexture.storage.state_updates import Written, advance, merge_from
from fakes.failing_storage import FailingStorage, KilledError

pytestmark = pytest.mark.slow

VEHICLES = publication()
CARS = [Held(f"car{number}") for number in range(12)]


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    return Home(str(tmp_path))


def changes(home: FileTree, sequence: int, *files: list[Held]) -> StoredFolder:
    """A folder of what a run changed, as its shards wrote it."""
    folder = StoredFolder(home, f"changes{sequence}")
    for number, rows in enumerate(files):
        folder.write_table(f"shard-{number:05d}.parquet", state_table(rows))
    return folder


def advanced(
    state: State, before: StatePointer, sequence: int, *files: list[Held], rows_in_chunk: int = 100
) -> StatePointer:
    folder = changes(state.folder.home, sequence, *files)
    written = advance(state, before, folder, sequence, rows_in_chunk=rows_in_chunk)
    return pointing(written)


def pointing(written: Written) -> StatePointer:
    return StatePointer(files=written.files, rows=written.rows, identities=written.identities)


@pytest.mark.parametrize(
    ("rows", "added", "first"),
    [
        ((), 5, 0),
        ((1000,), 200, 1),
        ((1000,), 201, 0),
        ((1000, 100), 20, 2),
        ((1000, 100), 21, 1),
        ((1000, 100), 101, 0),
        ((1000, 100, 10), 1, 3),
        ((1000, 100, 10), 3, 2),
        ((0,), 1, 0),
    ],
)
def test_what_newer_files_outgrow_is_merged_with_them(rows: tuple[int, ...], added: int, first: int):
    assert merge_from(rows, added) == first


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=300))
def test_files_stay_few_whatever_is_added(deltas: list[int]):
    rows: list[int] = []
    for added in deltas:
        first = merge_from(rows, added)
        rows = [*rows[:first], sum(rows[first:]) + added]

    assert sum(rows) == sum(deltas)
    # Each is at least five times as large as all newer ones together: 300,000 = 6 ** 7.04.
    assert len(rows) <= 8


def test_rows_are_rewritten_some_times_and_not_once_a_run():
    rows, written = [1_000_000], 0
    for _ in range(1000):
        first = merge_from(rows, 100)
        rows = [*rows[:first], sum(rows[first:]) + 100]
        written += rows[-1]

    # A base that is rewritten whenever fifty deltas are there would have cost twenty million rows.
    assert written < 2_000_000


def test_few_changes_write_few_rows(storage: Home):
    state = storage.publication("vehicles").state
    base = advanced(state, StatePointer(), 1, CARS)

    after = advanced(state, base, 2, [Held("car3", "b"), Held("car99")])

    assert (after.files, after.rows) == ((*base.files, "delta-000000000002.parquet"), (12, 2))
    assert after.identities == 13


def test_much_at_once_is_sorted_in_chunks_and_ends_as_one_file(storage: Home):
    state = storage.publication("vehicles").state
    twice = [CARS, [Held(row.name, "b") for row in CARS[:5]]]

    pointer = advanced(state, StatePointer(), 1, *twice, rows_in_chunk=3)

    assert (pointer.files, pointer.rows, pointer.identities) == (("base-000000000001.parquet",), (12,), 12)
    assert held(storage, "vehicles", pointer) == {row.name: "b" if row in CARS[:5] else "a" for row in CARS}


def test_chunks_of_one_run_do_not_count_an_identity_twice(storage: Home):
    state = storage.publication("vehicles").state
    base = advanced(state, StatePointer(), 1, [Held(f"car{number}") for number in range(100)])
    changes = [[Held("new1"), Held("car1", removed=True)], [Held("new1", "b"), Held("car2", "c")]]

    after = advanced(state, base, 2, *changes, rows_in_chunk=1)

    assert (after.files, after.rows) == ((*base.files, "merged-000000000002.parquet"), (100, 3))
    assert after.identities == 100
    assert len(held(storage, "vehicles", after)) == 100


def test_the_files_are_sorted_in_small_row_groups_and_say_where_entities_lie(storage: Home):
    state = storage.publication("vehicles").state

    pointer = advanced(
        state, StatePointer(), 1, [Held(f"car{number}") for number in range(ROWS_IN_GROUP + 1)], rows_in_chunk=10_000
    )

    metadata = pq.ParquetFile(storage.path(state.folder.path_of(pointer.files[0]))).metadata
    first, second = (metadata.row_group(group) for group in range(metadata.num_row_groups))
    place = metadata.schema.names.index("entity_hash")
    assert (first.num_rows, second.num_rows) == (ROWS_IN_GROUP, 1)
    assert first.column(place).statistics.max < second.column(place).statistics.min


def test_the_same_runs_write_the_same_bytes(tmp_path: Path):
    written = []
    for home in ("here", "there"):
        state = Home(str(tmp_path / home)).publication("vehicles").state
        pointer = advanced(state, StatePointer(), 1, CARS, rows_in_chunk=5)
        pointer = advanced(state, pointer, 2, [Held("car3", "b"), Held("car4", removed=True)])
        pointer = advanced(state, pointer, 3, [Held("car5", "c")])
        written.append({name: state.folder.read(name) for name in pointer.files})

    assert written[0] == written[1]
    assert len(written[0]) == 1


def test_wherever_concluding_dies_the_state_is_the_old_or_the_new_one(tmp_path: Path):
    died = 0
    while True:
        storage = Home(str(tmp_path / str(died)))
        state = storage.publication("vehicles").state
        state.commit(advanced(state, StatePointer(), 1, CARS))
        manifest = approved(storage, VEHICLES, 2, [Held("car1", "b")])
        try:
            conclude(
                FailingStorage(storage.root, died).publication(manifest.publication), manifest, cluster="c", target="t"
            )
        except KilledError:
            assert held(storage, "vehicles")["car1"] == ("b" if state.pointer().generation else "a")
        else:
            break
        again = conclude(storage.publication(manifest.publication), manifest, cluster="c", target="t")
        assert (held(storage, "vehicles")["car1"], again.identities, again.format) == ("b", 12, 3)
        died += 1
    # Delta, pointer, status and marker.
    assert died >= 4


RUNS = st.lists(
    st.lists(
        st.builds(
            Held,
            st.sampled_from([f"car{number}" for number in range(30)]),
            st.sampled_from("ab"),
            removed=st.booleans(),
            sequence=st.just(1),
            missing_since=st.none(),
        ),
        max_size=10,
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=40)
@given(runs=RUNS, rows_in_chunk=st.integers(1, 12))
def test_any_sequence_of_runs_reads_like_a_dict(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[Held]], rows_in_chunk: int
):
    state = Home(str(tmp_path_factory.mktemp("home"))).publication("vehicles").state
    pointer, expected = StatePointer(), dict[str, str]()
    for sequence, rows in enumerate([CARS, *runs], 1):
        pointer = advanced(state, pointer, sequence, rows, rows_in_chunk=rows_in_chunk)
        for row in rows:
            expected.pop(row.name, None)
            if not row.removed:
                expected[row.name] = row.content
        assert held(state.folder.home, "vehicles", pointer) == expected
        assert pointer.identities == len(expected)
