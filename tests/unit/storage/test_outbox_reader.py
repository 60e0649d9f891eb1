"""Reading a shard from any position."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.layout import PublicationPaths
from builders.outboxes import outbox, publication, records
from contexture.errors import DefectError
from contexture.storage.home import Home
from contexture.storage.manifests import Manifest
from contexture.storage.outbox_reader import OutboxShardReader
from contexture.storage.publication_store import SHARD_FILE

RECORDS = 23
FOLDER = PublicationPaths("vehicles")


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(str(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def manifest(storage: Home) -> Manifest:
    """An outbox whose first shard is a file of row groups of five rows; its second shard is empty."""
    made = outbox(storage, publication(), 7, [records(*(f"car{number}" for number in range(RECORDS))), []])
    path = storage.path(f"{FOLDER.shard(made.outbox, 0)}/{SHARD_FILE}")
    pq.write_table(pq.read_table(path, partitioning=None), path, row_group_size=5)
    return made.model_copy(update={"headers": (("contexture-backfill", "2026-03-01"),)})


@settings(deadline=None)
@given(start=st.integers(0, RECORDS + 3), rows=st.integers(1, 12))
def test_reading_begins_exactly_where_it_is_asked_to(storage: Home, manifest: Manifest, start: int, rows: int):
    reader = OutboxShardReader(storage, manifest, 0, rows_per_batch=rows)

    batches = list(reader.batches(start))

    assert [position for batch in batches for position in batch.column("position").to_pylist()] == list(
        range(start, RECORDS)
    )
    assert all(0 < batch.num_rows <= rows for batch in batches)


def test_a_reader_knows_whose_records_it_reads(storage: Home, manifest: Manifest):
    reader = OutboxShardReader(storage, manifest, 0)

    assert (reader.outbox_id, reader.sequence, reader.shard, reader.records) == ("outbox7", 7, 0, RECORDS)
    assert reader.headers == (("contexture-backfill", b"2026-03-01"),)
    (first, *_) = next(reader.batches(22)).to_pylist()
    assert (first["topic"], first["key"], first["value"]) == ("cars", b"car22", b'{"id":"car22"}')


def test_an_empty_shard_has_no_batches(storage: Home, manifest: Manifest):
    reader = OutboxShardReader(storage, manifest, 1)

    assert reader.records == 0
    assert list(reader.batches(0)) == []


def test_a_shard_that_there_is_not_is_a_defect(storage: Home, manifest: Manifest):
    with pytest.raises(DefectError, match="outbox outbox7 has no shard 5, only 2 shards"):
        OutboxShardReader(storage, manifest, 5)


def test_positions_with_a_gap_are_a_defect_that_says_what_to_do(tmp_path: Path):
    storage = Home(str(tmp_path))
    made = outbox(storage, publication(), 1, [records("a", "b", "c")])
    path = storage.path(f"{FOLDER.shard(made.outbox, 0)}/{SHARD_FILE}")
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.set_column(0, table.schema.field(0), pa.array([0, 2, 3])), path)

    with pytest.raises(DefectError, match="position 2 is where 1 should be") as error:
        list(OutboxShardReader(storage, made, 0).batches(1))

    assert "contexture outbox abandon outbox1" in error.value.next_step


_READS_A_SHARD = """
import sys
from contexture.sending import Ledger, Publisher
from contexture.storage.home import Home

store = Home(sys.argv[1]).publication("vehicles")
reader = store.reader(store.outboxes.manifest(sys.argv[2]), 0)
print(sum(batch.num_rows for batch in reader.batches(0)), "pandas" in sys.modules)
"""


@pytest.mark.slow
def test_the_process_of_a_sender_imports_no_pandas(storage: Home, manifest: Manifest):
    # pyarrow.dataset imports it: 0.26 s and 45 MiB of each sender.
    command = [sys.executable, "-c", _READS_A_SHARD, storage.uri(""), manifest.outbox]

    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert output.split() == [str(RECORDS), "False"]
