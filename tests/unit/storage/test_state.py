"""State: deltas over a base, and looking up many identities at once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.states import Held, state_table, write_files
from contexture.records.changes.identity_hashes import hash_words
from contexture.storage.home import Home
from contexture.storage.schemas import STATE
from contexture.storage.state import StateIndex, StatePointer
from contexture.storage.state_files import latest

NAMES = st.sampled_from(["car1", "car2", "car3", "car4"])
ROWS = st.lists(
    st.builds(Held, NAMES, st.sampled_from("abc"), removed=st.booleans(), sequence=st.just(1), missing_since=st.none()),
    max_size=5,
)
# Few different bytes, so that many hashes share their first eight, and some differ only in the last.
HASHES = st.tuples(st.sampled_from([b"\0" * 8, b"\xff" * 8, b"same8byt"]), st.binary(min_size=8, max_size=8)).map(
    b"".join
)


@settings(deadline=None)
@given(st.lists(ROWS, max_size=4))
def test_the_last_row_of_each_identity_holds_as_in_a_dict(files: list[list[Held]]):
    expected: dict[str, str] = {}
    for row in (row for rows in files for row in rows):
        expected.pop(row.name, None)
        if not row.removed:
            expected[row.name] = row.content

    table = latest(pa.concat_tables([STATE.empty_table(), *map(state_table, files)]))

    found = {row["identity"].decode(): row["content_hash"].decode().strip() for row in table.to_pylist()}
    assert found == expected
    hashes = table.column("identity_hash").to_pylist()
    assert hashes == sorted(hashes)


@settings(deadline=None)
@given(st.lists(HASHES, unique=True, max_size=20), st.lists(HASHES, max_size=20))
def test_finding_is_a_dict_lookup(held: list[bytes], asked: list[bytes]):
    contents = {identity: bytes([number]) * 32 for number, identity in enumerate(sorted(held))}
    table = pa.table(
        {
            "identity_hash": pa.array(list(contents), pa.binary(16)),
            "content_hash": pa.array(list(contents.values()), pa.binary(32)),
        }
    )
    wanted = [*asked, *held]

    found = StateIndex(table).find(pa.array(wanted, pa.binary(16)))

    assert found == [contents.get(identity) for identity in wanted]


def test_identities_that_share_their_first_eight_bytes_are_distinguished():
    shared = [b"12345678" + bytes([number]) * 8 for number in range(50)]
    table = pa.table(
        {
            "identity_hash": pa.array(shared, pa.binary(16)),
            "content_hash": pa.array([name * 2 for name in shared], pa.binary(32)),
        }
    )
    absent = b"12345678" + b"\x07" * 7 + b"\x08"

    found = StateIndex(table).find(pa.array([shared[49], absent, shared[0], b"\xff" * 16], pa.binary(16)))

    assert found == [shared[49] * 2, None, shared[0] * 2, None]


def test_an_empty_index_finds_nothing():
    index = StateIndex(STATE.empty_table().select(["identity_hash", "content_hash"]))

    assert len(index) == 0
    assert index.find(pa.array([b"x" * 16, b"y" * 16], pa.binary(16))) == [None, None]
    assert index.find(pa.array([], pa.binary(16))) == []


def test_words_of_sliced_and_chunked_hashes_are_those_of_their_rows():
    hashes = [bytes([number]) * 8 + bytes([number + 100]) * 8 for number in range(6)]
    whole = pa.array(hashes, pa.binary(16))
    chunked = pa.chunked_array([whole.slice(1, 2), whole.slice(3, 2)])

    high, low = hash_words(chunked)

    assert high.tolist() == [int.from_bytes(one[:8], "big") for one in hashes[1:5]]
    assert low.tolist() == [int.from_bytes(one[8:], "big") for one in hashes[1:5]]


def test_before_the_first_run_there_is_an_empty_state(tmp_path: Path):
    state = Home(str(tmp_path)).publication("vehicles").state

    assert state.pointer() == StatePointer()
    assert state.table(state.pointer()).schema == STATE
    assert state.table(state.pointer(), ["key"]).column_names == ["key"]


def test_the_files_of_a_pointer_are_read_one_over_the_other(tmp_path: Path):
    state = Home(str(tmp_path)).publication("vehicles").state
    pointer = write_files(
        state,
        [Held("car1", "a"), Held("car2", "a"), Held("car3", "a")],
        [Held("car2", "b"), Held("car3", removed=True), Held("car4", "d")],
    )
    state.commit(pointer)

    table = state.table(state.pointer(), ["key", "content_hash"])

    assert {row["key"]: row["content_hash"].strip() for row in table.to_pylist()} == {
        b"car1": b"a",
        b"car2": b"b",
        b"car4": b"d",
    }
    assert table.column_names == ["key", "content_hash"]
