"""Reading state: a few entities cost the row groups that can hold them, everything is read piece by piece."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.outboxes import publication
from builders.states import Held, approved, held, state_table, write_files
from contexture.errors import RetriableError
from contexture.events import identity_hash
from contexture.storage.conclusion import conclude
from contexture.storage.home import Home
from contexture.storage.schemas import STATE
from contexture.storage.state import INDEXED, State, StateLookup
from contexture.storage.state_files import ROWS_IN_GROUP, StateFile, merged

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MANY = 5 * ROWS_IN_GROUP
NAMES = [f"car{number}" for number in range(12)]
ROWS = st.lists(
    st.builds(
        Held,
        st.sampled_from(NAMES),
        st.sampled_from("abc"),
        removed=st.booleans(),
        sequence=st.just(1),
        missing_since=st.none(),
    ),
    max_size=8,
)


@pytest.fixture
def state(tmp_path: Path) -> State:
    return Home(str(tmp_path)).publication("vehicles").state


def hashes(*names: str) -> Any:
    return pa.array([identity_hash(name.encode()) for name in names], pa.binary(16))


def names(table: Any) -> list[str]:
    return sorted(name.decode() for name in table["identity"].to_pylist())


def contents(files: Iterable[Iterable[Held]]) -> dict[str, str]:
    expected: dict[str, str] = {}
    for row in (row for rows in files for row in rows):
        expected.pop(row.name, None)
        if not row.removed:
            expected[row.name] = row.content
    return expected


def test_a_state_that_runs_have_moved_on_twice_meanwhile_is_read_again(tmp_path: Path):
    """As a backfill may meet it, which plans beside normal runs."""
    storage, cars = Home(str(tmp_path)), [Held(f"car{number}") for number in range(3)]
    conclude(
        storage.publication("vehicles"),
        approved(storage, publication(), 1, cars),
        cluster="c",
        target="t",
    )
    state = storage.publication("vehicles").state
    before = state.reader(state.pointer())
    for sequence in (2, 3):
        changed = [Held(f"car{number}", str(sequence)) for number in range(3)]
        conclude(
            storage.publication("vehicles"),
            approved(storage, publication(), sequence, changed),
            cluster="c",
            target="t",
        )

    with pytest.raises(RetriableError, match="runs changed state while it was read"):
        before.table(["identity"])


def test_one_entity_of_many_costs_one_row_group_of_each_file(state: State):
    pointer = write_files(state, [Held(f"car{number}") for number in range(MANY)], [Held("car7", "b")])
    reader = state.reader(pointer)

    found = reader.of_entities(hashes("car4242"), STATE.names)

    assert names(found) == ["car4242"]
    assert (reader.groups, reader.groups_of(hashes("car4242"))) == (6, 1)
    assert reader.groups_read == 1
    assert reader.of_entities(hashes("car7"), ["content_hash"])["content_hash"].to_pylist() == [b"b".ljust(32)]
    assert reader.groups_read == 3


def test_an_entity_that_is_not_held_is_not_found(state: State):
    reader = state.reader(write_files(state, [Held("car1"), Held("car2")], [Held("car2", removed=True)]))

    assert reader.of_entities(hashes("car2", "car3"), ["key"]).num_rows == 0
    assert reader.of_entities(hashes(), ["key"]).num_rows == 0


def test_all_attributes_of_an_entity_are_found_by_its_hash(state: State):
    rows = state_table([Held(f"car{number}") for number in range(6)])
    entities = hashes("a", "b", "a", "b", "a", "c")
    table = rows.set_column(STATE.get_field_index("entity_hash"), STATE.field("entity_hash"), entities)
    pointer = write_files(state, table)

    found = state.reader(pointer).of_entities(hashes("a"), ["identity"])

    assert names(found) == ["car0", "car2", "car4"]


@settings(deadline=None)
@given(st.lists(ROWS, max_size=4), st.integers(1, 30), st.lists(st.sampled_from(NAMES), max_size=5))
def test_whatever_is_asked_the_files_read_like_a_dict(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[Held]], rows_at_once: int, asked: list[str]
):
    state = Home(str(tmp_path_factory.mktemp("home"))).publication("vehicles").state
    expected = contents(files)
    pointer = write_files(state, *files)
    reader = state.reader(pointer)

    opened = [StateFile(state.folder, name) for name in pointer.files]
    pieces = list(merged(opened, STATE.names, rows_at_once=rows_at_once))
    order = [row for piece in pieces for row in piece["entity_hash"].to_pylist()]

    assert held(state.folder.home, "vehicles", pointer) == expected
    assert names(reader.of_entities(hashes(*asked), STATE.names)) == sorted({*asked} & {*expected})
    assert order == sorted(order)
    assert len(order) == len(expected)


def test_looking_up_again_and_again_never_costs_more_than_twice_everything(state: State):
    reader = state.reader(write_files(state, [Held(f"car{number}") for number in range(MANY)]))
    lookup = StateLookup(reader)

    found = []
    for number in range(100):
        one = hashes(f"car{number * 50}")
        found += lookup.contents(one, one)

    assert found == [b"a".ljust(32)] * 100
    assert reader.groups == 5
    assert 5 < reader.groups_read < 10


def test_many_at_once_are_looked_up_in_one_reading(state: State):
    reader = state.reader(write_files(state, [Held(f"car{number}") for number in range(MANY)]))
    lookup = StateLookup(reader)
    many = hashes(*(f"car{number}" for number in range(0, 2 * MANY, 50)))

    found = lookup.contents(many, many)

    assert found.count(None) == 200
    assert len(found) == 400
    lookup.contents(many, many)
    assert reader.groups_read == 5


def test_contents_are_looked_up_with_their_times_where_that_is_asked_for(state: State):
    reader = state.reader(write_files(state, [Held(f"car{number}") for number in range(20)], [Held("car7", "b")]))
    asked = hashes("car7", "van1", "car3")
    noon = NOON // MICROSECOND

    found = StateLookup(reader, times=True).contents_and_times(asked, asked)

    assert found == [(b"b".ljust(32), noon), (None, None), (b"a".ljust(32), noon)]
    empty = state.folder.home.publication("none").state
    assert StateLookup(empty.reader(empty.pointer()), times=True).contents_and_times(asked, asked) == [(None, None)] * 3


def test_nothing_is_read_for_a_state_that_is_empty(state: State):
    reader = state.reader(state.pointer())

    assert StateLookup(reader).contents(hashes("car1"), hashes("car1")) == [None]
    assert reader.table(INDEXED).column_names == INDEXED
    assert reader.groups_read == 0
