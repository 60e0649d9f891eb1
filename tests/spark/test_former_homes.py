"""A run of today that compares with the state of an earlier version, upgraded, finds only what really changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builders.homes import FORMER, VEHICLES, former_home
from builders.preparing import Preparer
from contexture.outbox.conclusion import conclude
from contexture.outbox.formats import stored
from contexture.outbox.lifecycle import Outboxes
from contexture.outbox.upgrading import upgrade

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", FORMER)
def test_what_the_earlier_version_sent_is_not_sent_again(spark: SparkSession, tmp_path: Path, name: str) -> None:
    storage = former_home(name, tmp_path)
    upgrade(storage, "vehicles", tuple(stored(storage, "vehicles")))
    outboxes = Outboxes(storage, "vehicles")
    (pending,) = outboxes.pending()
    conclude(storage, outboxes.manifest(pending.outbox), cluster="cluster-a", target="PLAINTEXT://broker:9092")
    runs = Preparer(spark, Path(storage.root), VEHICLES)
    runs.runs = 4
    # The source as the last run of the earlier version found it.
    shutil.copytree(Path(storage.root, runs.folder.landing("run3")), Path(storage.root, runs.folder.landing("run4")))
    manifest = runs.again("run4")
    assert (manifest.records, manifest.upserts, manifest.deletes) == (0, 0, 0)
    assert manifest.unchanged > 0
    assert sorted(runs.held("sequence").items()) == [
        ('["vehicles","/4wheels","car0","car"]', (3,)),
        ('["vehicles","/4wheels","car1","car"]', (2,)),
    ]
