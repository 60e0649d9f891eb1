"""However large single records are, a reader holds little at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.registry_outboxes import RegistryChange, registry_outbox, structures
from contexture.storage import outbox_reader as reading
from contexture.storage.home import Home
from contexture.storage.outbox_reader import OutboxShardReader

pytestmark = pytest.mark.slow


def test_a_reader_holds_one_large_record_at_a_time_and_many_small_ones(tmp_path: Path) -> None:
    storage, megabytes = Home(str(tmp_path)), bytes(range(256)) * 4096 * 20
    log = [
        RegistryChange(1, tuple(f"A{n}" for n in range(300))),
        *(RegistryChange(2 + n, (f"LARGE{n}",), body=megabytes) for n in range(3)),
        RegistryChange(5, tuple(f"B{n}" for n in range(300))),
    ]
    manifest = registry_outbox(storage, structures(), 1, log)
    batches = list(OutboxShardReader(storage, manifest, 0).batches(0))
    assert sum(batch.num_rows for batch in batches) == 603
    most = reading.BYTES_PER_BATCH + len(megabytes)
    assert all(sum(len(value) for value in batch.column("value").to_pylist()) < most for batch in batches)
    assert len(batches) <= 6


def test_a_reader_of_small_records_reads_them_in_few_batches(tmp_path: Path) -> None:
    storage = Home(str(tmp_path))
    manifest = registry_outbox(storage, structures(), 1, [RegistryChange(1, tuple(f"A{n}" for n in range(5_000)))])
    assert [batch.num_rows for batch in OutboxShardReader(storage, manifest, 0).batches(0)] == [5_000]
    assert [batch.num_rows for batch in OutboxShardReader(storage, manifest, 0).batches(4_000)] == [1_000]
