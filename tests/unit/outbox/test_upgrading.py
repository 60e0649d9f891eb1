"""Homes that earlier versions wrote are brought to the formats of today, with all that they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from builders.homes import FORMER, VEHICLES, former_home
from contexture.errors import ConfigurationError, DefectError, RetriableError
from contexture.outbox.conclusion import conclude, owe_full
from contexture.outbox.document import LaterFormatError
from contexture.outbox.formats import check_inbox, stored
from contexture.outbox.layout import PublicationFolder
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.reader import OutboxShardReader
from contexture.outbox.state import State
from contexture.outbox.storage import Storage
from contexture.outbox.upgrading import steps, upgrade
from contexture.publications import fingerprint
from fakes.failing_storage import FailingStorage, KilledError

FOLDER = PublicationFolder("vehicles")
CAR = b'["vehicles","/4wheels","%s","car"]'


def upgraded(storage: Storage) -> int:
    """Upgrades the vehicles; how many documents were changed."""
    return upgrade(storage, "vehicles", tuple(stored(storage, "vehicles")))


def held(storage: Storage) -> list[dict[str, Any]]:
    """All rows of state, in order."""
    state = State(storage, "vehicles")
    rows: list[dict[str, Any]] = state.table(state.pointer()).sort_by("identity").to_pylist()
    return rows


def digests(storage: Storage) -> dict[str, str]:
    """Every file with its digest."""
    root = Path(storage.root)
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(params=FORMER)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return former_home(request.param, tmp_path)


def test_state_holds_the_same_in_todays_format(storage: Storage) -> None:
    before, rows = State(storage, "vehicles").pointer(), held(storage)
    upgraded(storage)
    after = State(storage, "vehicles").pointer()
    (file,) = after.files
    assert (after.format, file.startswith("base-000000000002-format-3")) == (3, True)
    same = {"format", "files", "rows"}
    assert after.model_dump(exclude=same) == before.model_dump(exclude=same)
    assert held(storage) == rows
    assert [(row["identity"], row["missing_since"] is not None) for row in rows] == [
        (CAR % b"car0", False),
        (CAR % b"car1", False),
        (CAR % b"car2", True),
    ]
    assert rows[0].keys() >= {"expires_at", "references", "is_final"}


def test_every_document_says_its_format_afterwards(storage: Storage) -> None:
    assert any(each.found is None for each in stored(storage, "vehicles"))
    assert upgraded(storage) > 0
    assert {(each.kind.name, each.found) for each in stored(storage, "vehicles")} == {
        ("state", 3),
        ("outbox manifest", 1),
        ("outbox status", 1),
        ("verdict", 1),
        ("landing manifest", 1),
    }


def test_a_second_time_changes_nothing(storage: Storage) -> None:
    upgraded(storage)
    before = digests(storage)
    assert upgraded(storage) == 0
    assert digests(storage) == before


def test_what_was_pending_is_read_and_concluded(storage: Storage) -> None:
    upgraded(storage)
    outboxes = Outboxes(storage, "vehicles")
    (pending,) = outboxes.pending()
    manifest = outboxes.manifest(pending.outbox)
    readers = [OutboxShardReader(storage, manifest, shard) for shard in (0, 1)]
    records = sorted(
        (row["key"], row["value"]) for reader in readers for batch in reader.batches(0) for row in batch.to_pylist()
    )
    assert (pending.status, manifest.sequence) == ("approved", 3)
    assert [key for key, _ in records] == [CAR % b"car0", CAR % b"car2"]
    assert json.loads(records[0][1])["speed"]["value"] == 1
    assert records[1][1] is None
    pointer = conclude(storage, manifest, cluster="cluster-a", target="PLAINTEXT://broker:9092")
    assert (pointer.generation, pointer.sequence, pointer.identities, pointer.format) == (3, 3, 2, 3)
    assert [row["identity"] for row in held(storage)] == [CAR % b"car0", CAR % b"car1"]


def test_nothing_is_owed_because_of_the_upgrade(storage: Storage) -> None:
    upgraded(storage)
    pointer = State(storage, "vehicles").pointer()
    assert pointer.fingerprint == fingerprint(VEHICLES)
    assert pointer.owes_full is None


def test_wherever_it_is_killed_it_goes_on(tmp_path: Path) -> None:
    whole = former_home("first-release", tmp_path / "whole")
    changed = upgraded(whole)
    # The mark and state's new file come first.
    for changes in range(0, changed + 3):
        folder = tmp_path / str(changes)
        former = former_home("first-release", folder)
        with pytest.raises(KilledError):
            upgraded(FailingStorage(former.root, changes))
        assert len(held(former)) == 3, "whatever was done, it can be read"
        upgraded(former)
        assert digests(former) == digests(whole)


def test_while_it_is_under_way_nothing_moves_on(storage: Storage) -> None:
    storage.write(FOLDER.upgrading(), b"{}")
    outboxes = Outboxes(storage, "vehicles")
    (pending,) = outboxes.pending()
    with pytest.raises(RetriableError, match="the files of vehicles are being upgraded"):
        outboxes.move(pending.outbox, "abandoned", reason="a person says so")
    with pytest.raises(RetriableError, match="wait for `contexture upgrade` to end"):
        owe_full(storage, "vehicles", "a person says so")
    upgraded(storage)
    owe_full(storage, "vehicles", "a person says so")
    assert State(storage, "vehicles").pointer().owes_full == "a person says so"


class MovingStorage(Storage):
    """Where a run concludes while state is written anew."""

    @contextmanager
    def replacing(self, relative: str) -> Iterator[str]:
        with super().replacing(relative) as temporary:
            yield temporary
        if "-format-3" in relative:
            pointer = State(self, "vehicles").pointer().model_copy(update={"generation": 9})
            super().write(FOLDER.current_state(), pointer.to_json())


def test_a_run_that_concludes_meanwhile_wins(storage: Storage) -> None:
    moving = MovingStorage(storage.root)
    with pytest.raises(RetriableError, match="has moved its state on meanwhile"):
        upgraded(moving)
    assert State(storage, "vehicles").pointer().generation == 9
    upgraded(storage)
    pointer = State(storage, "vehicles").pointer()
    assert (pointer.generation, pointer.format) == (9, 3)


def test_a_state_that_holds_less_than_it_says_stays_as_it_is(storage: Storage) -> None:
    state = State(storage, "vehicles")
    state.point(state.pointer().model_copy(update={"identities": 4}))
    before = storage.read(FOLDER.current_state())
    with pytest.raises(DefectError, match="says 4 identities and holds 3"):
        upgraded(storage)
    assert storage.read(FOLDER.current_state()) == before


@pytest.mark.parametrize(
    ("path", "member"),
    [
        ("state/CURRENT", "format"),
        ("outbox/*/manifest.json", "format_version"),
        ("outbox/*/status.json", "format"),
        ("landing/run2/manifest.json", "format"),
        ("report/*/verdict.json", "format"),
    ],
)
def test_what_a_later_contexture_wrote_is_refused_before_anything_is_changed(
    tmp_path: Path, path: str, member: str
) -> None:
    storage = former_home("first-release", tmp_path)
    found = sorted((Path(storage.root) / "vehicles").glob(path))[-1]
    found.write_text(json.dumps(json.loads(found.read_text()) | {member: 99, "unheard_of": True}))
    before = digests(storage)
    with pytest.raises(
        LaterFormatError, match=r"written by a later Contexture: .* is of format 99, and this one knows"
    ):
        upgraded(storage)
    assert digests(storage) == before


def test_runs_refuse_what_a_later_contexture_wrote_too(storage: Storage) -> None:
    path = FOLDER.current_state()
    storage.write(path, json.dumps(json.loads(storage.read(path)) | {"format": 4, "unheard_of": 1}).encode())
    with pytest.raises(ConfigurationError, match="StatePointer is of format 4, and this one knows 3"):
        State(storage, "vehicles").pointer()


def test_notifications_of_a_later_contexture_are_refused(storage: Storage) -> None:
    name = "vehicles/inbox/00000000000000001-writer-000000000000"
    storage.write(name, b"CTXIN1\0\0\0\0")
    assert check_inbox(storage, "vehicles") == 1
    storage.write(name, b"CTXIN2\0\0\0\0")
    with pytest.raises(LaterFormatError, match="is of format 2, and this one knows 1"):
        check_inbox(storage, "vehicles")


def test_what_would_be_done_is_told_kind_by_kind(tmp_path: Path) -> None:
    found = steps(stored(former_home("first-release", tmp_path), "vehicles"))
    assert [(each.what, each.found, each.current, each.files, each.todo) for each in found] == [
        ("state", None, 3, 1, "written anew as one sorted file"),
        ("outbox manifest", 1, 1, 3, ""),
        ("outbox status", None, 1, 3, "marked with its format"),
        ("landing manifest", None, 1, 3, "marked with its format"),
        ("verdict", None, 1, 3, "marked with its format"),
    ]
