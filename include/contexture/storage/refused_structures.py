"""Quarantined structures that are asked for again: which they are, and the note of what was tried.

Their stored bodies are not used: the registry has them, as they are now.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ConfigurationError
from contexture.storage.layout import PublicationFolder
from contexture.storage.orders import Retry, StageOrder
from contexture.storage.retrying import Quarantine, nothing_held_back, write_marks
from contexture.storage.storage import Storage


def refused_structures(order: StageOrder, retry: Retry) -> tuple[str, ...]:
    """URNs of the structures that are tried again, each once; notes that this run tries them.

    Raises:
        ConfigurationError: nothing is held back any more, or nothing that a registry could be asked for.
        RetriableError: the storage failed.
    """
    storage, folder = Storage(order.home), PublicationFolder(order.publication.name)
    quarantine = Quarantine(storage, folder, retry.outbox)
    ordinals = quarantine.chosen(retry.rules)
    if not len(ordinals):
        raise nothing_held_back(order.publication.name, retry)
    rows = pa.concat_tables([quarantine.table(path, ["ordinal", "id"]) for path in quarantine.files])
    is_chosen = pc.is_in(rows.column("ordinal"), value_set=pa.array(ordinals))
    named = rows.filter(pc.and_(is_chosen, pc.is_valid(rows.column("id"))))
    if not named.num_rows:
        raise ConfigurationError(
            f"nothing says which structures they are that outbox {retry.outbox} holds back",
            next_step="correct them in the registry: the next run reads what changed",
            publication=order.publication.name,
            outbox=retry.outbox,
        )
    write_marks(storage, folder.chosen(order.run), np.unique(named.column("ordinal").to_numpy()))
    return tuple(sorted(set(named.column("id").to_pylist())))
