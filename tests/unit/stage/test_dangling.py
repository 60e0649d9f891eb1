"""References to an id that no entity has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.states import NOON, write_files
from contexture.events import ContextIdentity, identity_hash, identity_key
from contexture.storage.home import Home
from contexture.storage.schemas import STATE
from contexture.storage.state import StateReader
from spark_jobs.entities.snapshot_rules import count_dangling


def key(name: str) -> bytes:
    return identity_key(ContextIdentity("vehicles", "/", name, "car"))


def rows(**targets: list[str] | None) -> Any:
    """Entities by id with what they refer to."""
    columns = {
        "id": pa.array(list(targets), pa.string()),
        "entity_hash": pa.array([identity_hash(key(name)) for name in targets], pa.binary(16)),
        "targets": pa.array(list(targets.values()), pa.list_(pa.string())),
    }
    return pa.table(columns)


def holding(home: Path, *names: str) -> StateReader:
    state = Home(str(home)).publication("vehicles").state
    held = [
        {
            "identity_hash": identity_hash(key(name)),
            "entity_hash": identity_hash(key(name)),
            "identity": key(name),
            "content_hash": bytes(32),
            "topics": ["cars"],
            "modified_at": NOON,
            "withheld": False,
            "sequence": 1,
            "removed": False,
        }
        for name in names
    ]
    return state.reader(write_files(state, pa.Table.from_pylist(held, schema=STATE)))


def test_entities_are_counted_once_each(tmp_path: Path) -> None:
    snapshot = rows(a=["b", "x", "y"], b=["x"], c=["a"], d=None, e=[])

    assert count_dangling(snapshot, holding(tmp_path)) == 2


def test_what_state_holds_is_there(tmp_path: Path) -> None:
    reader = holding(tmp_path, "x", "a")

    assert count_dangling(rows(a=["x"], b=["x", "a"]), reader) == 0
    assert count_dangling(rows(a=["x"], b=["y"]), reader) == 1


def test_state_is_not_read_when_everything_is_there(tmp_path: Path) -> None:
    reader = holding(tmp_path, "x")

    assert (count_dangling(rows(a=["b"], b=["a"]), reader), reader.groups_read) == (0, 0)
    assert count_dangling(rows(), reader) == 0
