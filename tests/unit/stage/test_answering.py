"""The stage job's last act: its answer, printed and beside the order."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from builders.layout import PublicationPaths
from builders.outboxes import NOON, publication
from contexture.publications import fingerprint
from contexture.storage.home import Home
from contexture.storage.orders import StageOrder, StageResult
from spark_jobs import stage

FOLDER = PublicationPaths("vehicles")


@pytest.fixture
def storage(tmp_path: Path) -> Home:
    """A home with the order to replay an interval that has no archive."""
    storage = Home(str(tmp_path))
    order = StageOrder(
        publication=publication(),
        fingerprint=fingerprint(publication()),
        home=storage.root,
        run="run1",
        mode="backfill",
        sequence=1,
        interval=(NOON, NOON + timedelta(minutes=5)),
    )
    storage.write(FOLDER.order("run1"), order.to_json())
    return storage


def staged(storage: Home) -> int:
    return stage.main(["--order", storage.uri(FOLDER.order("run1"))])


def test_an_error_is_the_answer(storage: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert staged(storage) == 1
    result = StageResult.model_validate_json(storage.read(FOLDER.result("run1")))
    assert result.error is not None
    assert str(result.error["message"]).startswith("nothing of vehicles is archived between 2026-03-01T12:00:00+00:00")
    assert capsys.readouterr().out == result.model_dump_json() + "\n"


def test_an_answer_that_finds_no_room_is_printed_with_the_reason(
    storage: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FOLDER.result("run1") / "in-the-way").mkdir(parents=True)
    assert staged(storage) == 1
    printed = capsys.readouterr()
    assert "nothing of vehicles is archived" in orjson.loads(printed.out)["error"]["message"]
    assert "the storage could not read or write 'vehicles/runs/run1/result.json'" in printed.err
    assert "Next: make room or repair" in printed.err
