"""Judging and rendering what was pulled: the one pass over the data.

`evaluation(preparation)` gives the function for `mapInArrow`. It reads landing rows, and writes what is to be sent (see
`rendered`), what is refused, and one narrow row per event for planning and for the checkpoint (see `evaluated`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.storage.home import Storage
from contexture.storage.schemas import QUARANTINE
from contexture.storage.state import load_lookup
from spark_jobs.preparation.attribute_rows import ATTRIBUTES_FOLDER
from spark_jobs.preparation.entities import EntityEvaluator
from spark_jobs.preparation.evaluated import EvaluatedRows, evaluated_folder, evaluated_schema
from spark_jobs.preparation.rendered import write_rendered
from spark_jobs.preparation.run_files import RunFiles
from spark_jobs.preparation.settings import Preparation

Evaluation = Callable[[Iterator[Any]], Iterator[Any]]

EVALUATED = pa.schema([pa.field("events", pa.int64())])
"""What Spark gets of each record batch: how many events it was."""


def evaluation(preparation: Preparation) -> Evaluation:
    """The function that evaluates landing record batches under one preparation; yields a row of EVALUATED for each."""

    def evaluate(batches: Iterator[Any]) -> Iterator[Any]:
        storage = Storage(preparation.home)
        rewritten = not preparation.publication.source.suppress_unchanged
        name, pointer = preparation.publication.name, preparation.pointer_json
        lookup = load_lookup(preparation.home, name, pointer, times=rewritten)
        evaluator = EntityEvaluator(preparation, lookup)
        with RunFiles(storage) as files:
            began: int | None = None
            following: int | None = None
            for batch in batches:
                for run in consecutive_runs(batch):
                    first, last = run.column("ordinal")[0].as_py(), run.column("ordinal")[run.num_rows - 1].as_py()
                    if first != following:
                        files.begin_run()
                    began, following = first if began is None else began, last + 1
                    with cycles_uncollected():
                        rows = evaluator.evaluate(run)
                        _store(rows, run, files, preparation)
                    yield pa.record_batch([[len(rows.narrow_rows)]], schema=EVALUATED)
        if evaluator.seen_types is not None and began is not None:
            evaluator.seen_types.save(storage, preparation.work, began)

    return evaluate


def consecutive_runs(batch: Any) -> Iterator[Any]:
    """The batch, cut where an ordinal does not follow on the one before."""
    if not batch.num_rows:
        return
    ordinals = batch.column("ordinal").to_numpy()
    start = 0
    for gap in ((ordinals[1:] - ordinals[:-1]) != 1).nonzero()[0] + 1:
        yield batch.slice(start, int(gap) - start)
        start = int(gap)
    yield batch.slice(start)


@contextmanager
def cycles_uncollected() -> Iterator[None]:
    """Python's search for cycles waits for the end of the block.

    Parsed entities hold none and are many: the search, which looks through all of them over and over, took a quarter of
    the evaluation, and more the more rows a batch has.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


def _store(rows: EvaluatedRows, run: Any, files: RunFiles, preparation: Preparation) -> None:
    files.write(evaluated_folder(preparation), rows.narrow(evaluated_schema(preparation)))
    write_rendered(files, preparation.work, rows.rendered(preparation))
    files.write(f"{preparation.work}/{ATTRIBUTES_FOLDER}", rows.attributes())
    if rows.refusals:
        _write_quarantine(rows, run, preparation)


def _write_quarantine(rows: EvaluatedRows, run: Any, preparation: Preparation) -> None:
    refused = pa.Table.from_batches([run]).take(pa.array([refusal.row for refusal in rows.refusals]))
    for name in ("rule", "severity", "message"):
        refused = refused.append_column(
            name, pa.array([getattr(refusal, name) for refusal in rows.refusals], pa.string())
        )
    ordinal = run.column("ordinal")[0].as_py()
    folder, storage = preparation.folder.quarantine(preparation.outbox), Storage(preparation.home)
    with storage.replacing(f"{folder}/{ordinal:020d}.parquet") as path:
        pq.write_table(refused.select(QUARANTINE.names).cast(QUARANTINE), path, filesystem=storage.filesystem)
