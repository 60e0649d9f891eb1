"""The stage job: `spark-submit stage.py --order URI`. Reads, prepares, judges; prints one line of JSON.

The order is a file, so only its address is on the command line. The connection to the source is in the environment
variable CONTEXTURE_SOURCE_CONNECTION. The result is printed and also written beside the order.
"""

from __future__ import annotations

import argparse
import sys
import traceback

from contexture.errors import ContextureError
from contexture.storage.file_tree import FileTree
from contexture.storage.manifests import Manifest
from contexture.storage.orders import StageOrder, StageResult
from spark_jobs import quality
from spark_jobs.backfill import backfill
from spark_jobs.session import to_contexture_error
from spark_jobs.shared.context import store_of
from spark_jobs.shared.outbox import Stopwatch
from spark_jobs.shared.verdict import stored_verdict


def stage(order: StageOrder) -> StageResult:
    """Runs one stage and returns its result.

    Raises:
        ContextureError: the source, the storage or the configuration was at fault.
    """
    watch = Stopwatch()
    is_backfill = order.mode == "backfill"
    manifest = backfill(order, lambda: _run_pipeline(order, watch)) if is_backfill else _run_pipeline(order, watch)
    verdict = stored_verdict(order, manifest)
    return StageResult(
        outbox=manifest.outbox,
        sequence=manifest.sequence,
        records=manifest.records,
        shards=tuple(shard.shard for shard in manifest.shards if shard.records),
        approved=verdict.approved,
        report=store_of(order).outbox(manifest.outbox).report.uri,
        seconds=watch.seconds,
    )


def _run_pipeline(order: StageOrder, watch: Stopwatch) -> Manifest:
    from spark_jobs.pipeline import run_pipeline

    return run_pipeline(order, watch)


def main(arguments: list[str] | None = None) -> int:
    """Runs the job; returns the exit code: 0, or 1 when the result is an error."""
    parser = argparse.ArgumentParser(prog="stage", description="read, prepare and check one run of a publication")
    parser.add_argument("--order", required=True, help="address of the order file")
    folder, name = parser.parse_args(arguments).order.rsplit("/", 1)
    order = StageOrder.from_file(FileTree(folder), name)
    if order.mode != "backfill":
        quality.preload()
    try:
        result = stage(order)
    except Exception as error:
        if not isinstance(error, ContextureError):
            traceback.print_exc()
        failure = error if isinstance(error, ContextureError) else to_contexture_error(error)
        result = StageResult(error=failure.as_dict())
    sys.stdout.write(result.model_dump_json() + "\n")
    return 0 if _write_result(order, result) and not result.error else 1


def _write_result(order: StageOrder, result: StageResult) -> bool:
    """Returns whether the result was written beside the order; a full disk leaves none, and the reader handles that."""
    try:
        store_of(order).run(order.run).write_result(result)
    except ContextureError as error:
        sys.stderr.write(f"{error}\n")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
