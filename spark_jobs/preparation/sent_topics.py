"""The topics of the events that are to be sent, as parallel arrays."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes import Verdict
from contexture.records.changes.identity_hashes import hash_words


class SentTopics:
    """The events of a snapshot that are to be sent.

    Args:
        snapshot: in order of events, with `verdict`, `identity_hash`, `entity_hash`, `topic` and `meaning`.

    Attributes:
        rows: their rows in the snapshot.
        written: their topics.
        names: the different topics, as brokers compare them.
        topics: the number of each event's topic among them.
    """

    def __init__(self, snapshot: Any) -> None:
        self.rows = np.flatnonzero(np.asarray(pc.equal(snapshot.column("verdict"), Verdict.SEND)))
        self._sent = snapshot.take(pa.array(self.rows))
        self.written = self._sent.column("topic").combine_chunks()
        encoded = as_compared(self.written).dictionary_encode()
        self.names = encoded.dictionary
        self.topics = encoded.indices.to_numpy().astype(np.int64)

    @property
    def identities(self) -> Any:
        """The hash of each event's identity."""
        return self._sent.column("identity_hash")

    @property
    def entities(self) -> Any:
        """The hash of each event's entity."""
        return self._sent.column("entity_hash")

    @cached_property
    def meanings(self) -> Any:
        """What each event's topic stands for; its own identity where nothing else is said."""
        own = pa.array(hash_words(self.identities)[0].view(np.int64))
        return pc.coalesce(self._sent.column("meaning").combine_chunks(), own).to_numpy()


def as_compared(topics: Any) -> Any:
    """Topics in the form that brokers compare (`contexture.records.topics.collisions.as_brokers_compare`)."""
    compared = pc.replace_substring(topics, ".", "_")
    return compared.combine_chunks() if isinstance(compared, pa.ChunkedArray) else compared
