"""Reads of structures in this process, from a registry in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from contexture.publications import SdmxPublication
from contexture.publications.delivery import StructureMessage
from contexture.publications.source import SdmxSource
from contexture.publications.topics import StructureTopics
from contexture.sources.sdmx import Selector
from contexture.sources.sdmx.formats import splittable
from contexture.sources.sdmx.registry import RegistryConnection
from contexture.storage.file_tree import FileTree
from contexture.storage.folder import StoredFolder
from contexture.storage.manifests import Mode
from contexture.storage.orders import StageOrder
from fakes.structure_registry import MEDIA_TYPE, FakeRegistry
from spark_jobs.structures.read_context import ReadContext
from spark_jobs.structures.read_tasks import ReadTask, TaskResult, TaskShare, read_share

FOLDER = "codes/landing/r1"


@dataclass(frozen=True)
class Opened:
    """Opens one registry for any connection."""

    registry: FakeRegistry

    def __call__(self, connection: RegistryConnection, *, flavour: str) -> FakeRegistry:
        return self.registry


def structure_order(
    home: Path,
    *,
    run: str = "r1",
    mode: Mode = "full",
    baseline: bool = False,
    allow_lossy: bool = False,
    **source: Any,
) -> StageOrder:
    """The stage of a publication `codes` of a registry's structures."""
    message = StructureMessage.model_validate({"allow_lossy": allow_lossy})
    selected = SdmxSource.model_validate({"kind": "sdmx", "connection": "registry", **source})
    topics = StructureTopics.model_validate({"topics": ["codes"]})
    return StageOrder.model_construct(
        publication=SdmxPublication.model_construct(name="codes", source=selected, topics=topics, message=message),
        fingerprint="f",
        home=str(home),
        run=run,
        mode=mode,
        sequence=1,
        republish=False,
        confirm_shrink=False,
        interval=None,
        retry=None,
        baseline=baseline,
    )


def read_task(registry: FakeRegistry, home: Path, media_type: str = MEDIA_TYPE, **fields: Any) -> ReadTask:
    """Returns the settings of tasks."""
    return ReadTask(
        connection=RegistryConnection("http://memory"),
        flavour=registry.flavour,
        media_type=media_type,
        splits=splittable(media_type),
        landing=StoredFolder(FileTree(str(home)), FOLDER),
        opening=Opened(registry),
        **fields,
    )


def read_here(task: ReadTask, shares: Sequence[TaskShare]) -> list[TaskResult]:
    """Runs the tasks in order."""
    return [result for share in shares for result in read_share(task, share)]


def read_context(
    registry: FakeRegistry, home: Path, *, sent: Iterable[str] = (), select: Iterable[str] = (), **fields: Any
) -> ReadContext:
    """Returns the context of a read with two tasks."""
    selectors = [Selector.parse(text) for text in select]
    return ReadContext(registry, read_task(registry, home, **fields), selectors, sent, readers=2, read_shares=read_here)


def landed(home: Path) -> list[dict[str, Any]]:
    """Returns the rows of landing, in order."""
    tables = [pq.read_table(path) for path in sorted((home / FOLDER).glob("*.parquet"))]
    rows: list[dict[str, Any]] = pa.concat_tables(tables).sort_by("ordinal").to_pylist()
    return rows


def landed_changes(home: Path) -> list[tuple[int | None, str, str]]:
    """Returns transaction, operation and URN of each landed row, in order."""
    return [(row["source_transaction"], row["operation"], row["id"]) for row in landed(home)]
