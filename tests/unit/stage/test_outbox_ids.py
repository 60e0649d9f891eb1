"""Which runs make the same outbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.outboxes import NOON, publication
from contexture.publications import fingerprint
from contexture.storage.manifests import LandingManifest
from contexture.storage.orders import StageOrder
from spark_jobs.shared.outbox import build_context


def outbox_of(home: Path, run: str, *, rows: int) -> str:
    order = StageOrder(
        publication=publication(),
        fingerprint=fingerprint(publication()),
        home=str(home),
        run=run,
        mode="changes",
        sequence=2,
    )
    landing = LandingManifest(
        run=run,
        mode="changes",
        source="https://broker",
        queries=(),
        watermark_from=None,
        watermark_to=None,
        rows=rows,
        present=0,
        source_count=7,
        complete=False,
        started_at=NOON,
        finished_at=NOON,
        broker_time=None,
        files={},
        digest="of no files",
    )
    return build_context(order, landing, landing.digest).outbox


@pytest.mark.parametrize("rows", [0, 3])
def test_a_run_that_is_tried_again_makes_the_same_outbox(tmp_path: Path, rows: int) -> None:
    assert outbox_of(tmp_path, "run1", rows=rows) == outbox_of(tmp_path, "run1", rows=rows)


def test_two_runs_that_find_nothing_make_two_outboxes(tmp_path: Path) -> None:
    """The first may be rejected, by a dry run or a rule, and that is final."""
    assert outbox_of(tmp_path, "run1", rows=0) != outbox_of(tmp_path, "run2", rows=0)
