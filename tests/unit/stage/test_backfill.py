"""Where a backfill comes from when its interval has no archive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from builders.outboxes import NOON, publication
from contexture.errors import ConfigurationError
from contexture.ngsi.answers import NotOfferedError
from contexture.outbox.manifest import Manifest
from contexture.outbox.orders import StageOrder
from contexture.outbox.replay import NothingArchivedError
from contexture.publications import fingerprint
from spark_jobs.backfill import backfill

LINKED = {"kind": "ngsi", "connection": "broker", "service": "city", "api": "ngsi-ld"}


class _Asked(Exception):  # noqa: N818 - it says that something happened
    pass


def order(home: Path, source: dict[str, object] | None = None) -> StageOrder:
    owner = publication(source=source) if source else publication()
    return StageOrder(
        publication=owner,
        fingerprint=fingerprint(owner),
        home=str(home),
        run="run1",
        mode="backfill",
        sequence=1,
        interval=(NOON, NOON + timedelta(minutes=5)),
    )


def raising(error: Exception) -> Callable[[], Manifest]:
    def history() -> Manifest:
        raise error

    return history


def test_an_ngsi_ld_broker_is_asked_for_its_history(tmp_path: Path) -> None:
    with pytest.raises(_Asked):
        backfill(order(tmp_path, LINKED), raising(_Asked()))


def test_an_ngsiv2_broker_has_none(tmp_path: Path) -> None:
    with pytest.raises(NothingArchivedError, match="nothing of vehicles is archived"):
        backfill(order(tmp_path), raising(_Asked()))


def test_without_archive_and_history_both_are_said(tmp_path: Path) -> None:
    none = NotOfferedError("the context broker at http://b shows no history", next_step="let it keep one")
    with pytest.raises(ConfigurationError) as caught:
        backfill(order(tmp_path, LINKED), raising(none))
    assert caught.value.message.startswith("nothing of vehicles is archived between")
    assert caught.value.message.endswith(", and the context broker at http://b shows no history")
    assert caught.value.next_step.endswith("; or let it keep one")
