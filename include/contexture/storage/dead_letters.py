"""Which records of an outbox went to the dead-letter topic, kept beside it once it is concluded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from contexture.storage.document import Versioned
from contexture.storage.layout import PublicationFolder
from contexture.storage.manifest import Manifest
from contexture.storage.storage import Storage


class DeadLettered(Versioned):
    """The positions of these records, by shard."""

    format: int = 1
    shards: Mapping[int, tuple[int, ...]] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.shards.values()))


def keep_dead_letters(storage: Storage, manifest: Manifest, found: DeadLettered) -> None:
    """Keeps them; nothing is written where there are none."""
    if found.count:
        storage.write(PublicationFolder(manifest.publication).dead_letters(manifest.outbox), found.to_json())


def dead_letters_of(storage: Storage, manifest: Manifest) -> DeadLettered:
    """Those of a concluded outbox."""
    try:
        read = storage.read(PublicationFolder(manifest.publication).dead_letters(manifest.outbox))
    except FileNotFoundError:
        return DeadLettered()
    return DeadLettered.model_validate_json(read)


def without_dead_letters(batches: Iterator[Any], positions: tuple[int, ...]) -> Iterator[Any]:
    """The rows of a shard that are in their topics."""
    for batch in batches:
        kept = ~np.isin(np.asarray(batch.column("position")), positions) if positions else None
        yield batch if kept is None or kept.all() else batch.filter(pa.array(kept))
