"""How topics, keys and batches of a publication come about, shown on a few entities that its last run read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.parquet as pq

from contexture.errors import ContextureError
from contexture.operations.actions.preview import (
    Preview,
    SampleEntity,
    Samples,
    ShownName,
    asked_of_sample,
    preview,
    show_names,
)
from contexture.operations.actions.structure_preview import StructurePreview
from contexture.operations.actions.structure_preview import preview as preview_structures
from contexture.operations.status.sources import Sources, manifest
from contexture.publications import Publication
from contexture.sources.ngsi.notifications import notified_form
from contexture.storage.home import Storage
from contexture.storage.publication_store import PublicationFolder
from contexture.storage.state import State

ENTITIES = 10
STRUCTURES = 20_000
"""Of so many it is told where they go."""
_COLUMNS = ["operation", "path", "body", "media_type", "received_at"]


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the sample would become.

    Attributes:
        names: what each topic's name is made of.
        preview: records with their topics, keys and batches.
        structures: where structures that the target holds go.
        why_not: why there is nothing to show.
    """

    names: tuple[ShownName, ...] = ()
    preview: Preview | None = None
    structures: StructurePreview | None = None
    why_not: str = ""


def _structures(storage: Storage, publication: Publication) -> Sampled:
    state = State(storage, publication.name)
    urns = state.table(state.pointer(), ["identity"]).column("identity").to_pylist()[:STRUCTURES]
    if not urns:
        return Sampled(why_not="the target holds no structure: run the publication first")
    try:
        held = [urn.decode() for urn in urns]
        return Sampled(structures=preview_structures(publication, "what the target holds", held))
    except ContextureError as error:
        return Sampled(why_not=str(error))


def sampled(sources: Sources, name: str) -> Sampled:
    """The first entities of the last concluded run, as the publication's file would name and batch them now.

    Of a registry, the structures that the target holds, and where the file would send them now.

    Raises:
        RetriableError: the storage did not answer.
    """
    publication = sources.publications.get(name)
    if publication is None:
        return Sampled(why_not="there is no good publication file of this name")
    if publication.source.kind == "sdmx":
        return _structures(sources.storage, publication)
    if publication.source.kind != "ngsi":
        return Sampled(why_not=f"events go to {', '.join(publication.topics.topics)}")
    concluded = manifest(sources.storage, name, State(sources.storage, name).pointer().outbox)
    entities = tuple(_entities(sources.storage, name, concluded.run)) if concluded else ()
    if not entities:
        return Sampled(why_not="nothing that was read is kept: run the publication first")
    samples = Samples("the last concluded run", entities, None)
    try:
        asked, _ = asked_of_sample(publication, samples)
        return Sampled(tuple(show_names(publication, asked)[: 3 * ENTITIES]), preview(publication, samples))
    except ContextureError as error:
        return Sampled(why_not=str(error))


def _entities(storage: Storage, name: str, run: str) -> Iterator[SampleEntity]:
    folder, left = PublicationFolder(name).landing(run), ENTITIES
    for file in storage.files(folder, ".parquet"):
        for row in _rows(storage, f"{folder}/{file}"):
            if row.body is not None:
                yield row
                left -= 1
            if left == 0:
                return


def _rows(storage: Storage, path: str) -> Iterator[SampleEntity]:
    with storage.translating(path), storage.filesystem.open_input_file(storage.path(path)) as file:
        batch = next(pq.ParquetFile(file).iter_batches(batch_size=4 * ENTITIES, columns=_COLUMNS), None)
        rows = [] if batch is None else batch.to_pylist()
    for row in rows:
        is_plain = row["operation"] == "upsert" and notified_form(row["media_type"] or "") is None
        if is_plain and row["body"] is not None:
            yield SampleEntity(row["body"], row["path"], row["received_at"])
