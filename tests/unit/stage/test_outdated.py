"""Retried events against what the target holds by now."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from builders.states import NOON, Held, state_table, write_files
from contexture.events import identity_hash
from contexture.storage.home import Home
from spark_jobs.entities.rows import find_outdated


@pytest.mark.parametrize(
    ("minutes", "sent_by", "notified", "is_outdated"),
    [
        (-1, 1, False, True),
        (1, 9, False, False),
        (0, 5, False, False),
        (0, 6, False, True),
        (None, 5, False, False),
        (None, 6, False, True),
        (None, 5, True, True),
        (None, 4, True, False),
    ],
)
def test_time_decides_and_where_it_does_not_the_run_that_sent_it(
    tmp_path: Path, minutes: int | None, sent_by: int, notified: bool, is_outdated: bool
) -> None:
    """`minutes`: from the time of what is held to that of the event, which run 5 refused."""
    state = Home(str(tmp_path)).publication("vehicles").state
    reader = state.reader(write_files(state, state_table([Held("car1", sequence=sent_by), Held("car3")])))
    moment = None if minutes is None else NOON + timedelta(minutes=minutes)
    hashes = pa.chunked_array([pa.array([identity_hash(name) for name in (b"car1", b"car2")], pa.binary(16))])
    snapshot = pa.table(
        {
            "identity_hash": hashes,
            "entity_hash": hashes,
            "modified_at": pa.array([moment, NOON], pa.timestamp("us", tz="UTC")),
            "notified": [notified, notified],
        }
    )

    assert find_outdated(snapshot, reader, 5).tolist() == ([0] if is_outdated else [])


def test_nothing_held_is_newer_than_nothing(tmp_path: Path) -> None:
    state = Home(str(tmp_path)).publication("vehicles").state
    hashes = pa.chunked_array([pa.array([identity_hash(b"car1")], pa.binary(16))])
    moments = pa.nulls(1, pa.timestamp("us", tz="UTC"))
    columns = {"identity_hash": hashes, "entity_hash": hashes, "modified_at": moments, "notified": [False]}

    assert find_outdated(pa.table(columns), state.reader(write_files(state)), 5).tolist() == []
