"""Which identities have topics already: what is sent, against state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contexture.records.changes.identity_hashes import hash_words
from contexture.records.topics.collisions import Meanings
from contexture.storage.state import StateReader
from spark_jobs.preparation.sent_topics import SentTopics, as_compared

_TOLD = ["identity_hash", "entity_hash", "topics"]


@dataclass(frozen=True, slots=True)
class Holder:
    """An identity (a JSON array, as in keys) that state has at a topic, and the topic as it is written."""

    identity: str
    topic: str


class Holders:
    """What state says about the topics of one run.

    Args:
        reader: the state.
        meanings: of the publication.
        sent: the events that are to be sent.

    Attributes:
        holds: for each event whether its identity had its topic before.
        known: by the number of a topic the meanings of newcomers that others of state have there too.
        foreign: by the number of a topic somebody who has it, and whom the run does not send to it; only of topics
            that get a new meaning.
    """

    def __init__(self, reader: StateReader, meanings: Meanings, sent: SentTopics) -> None:
        self._reader, self._meanings, self._sent = reader, meanings, sent
        self.holds = np.zeros(len(sent.rows), dtype=np.bool_) if reader.is_empty else self._held()
        self.known: dict[int, set[int]] = {}
        self.foreign: dict[int, Holder] = {}
        self._newcomers = {} if reader.is_empty else self._new_meanings()
        if self._newcomers:
            self._look_through()
            self.foreign = {topic: holder for topic, holder in self.foreign.items() if self._is_open(topic)}

    def _held(self) -> Any:
        self._words, self._first, self._of = np.unique(
            hash_words(self._sent.identities)[0], return_index=True, return_inverse=True
        )
        held = np.zeros(len(self._words), dtype=np.bool_)
        for table in self._of_sent():
            is_sent, places = self._places(table)
            topics = pc.list_element(table.column("topics").filter(pa.array(is_sent)), 0)
            same = pc.equal(topics.combine_chunks(), self._sent.written.take(pa.array(self._first[places])))
            held[places] |= np.asarray(same)
        return held[self._of]

    def _of_sent(self) -> Iterator[Any]:
        """The state's rows of what is sent, and perhaps others."""
        entities = self._sent.entities
        if self._reader.groups_of(entities) < self._reader.groups:
            yield self._reader.of_entities(entities, _TOLD)
        else:
            yield from self._reader.pieces(_TOLD)

    def _places(self, table: Any) -> tuple[Any, Any]:
        """Which rows of state are of identities that are sent, and their places among those."""
        words = hash_words(table.column("identity_hash"))[0]
        places = np.minimum(np.searchsorted(self._words, words), len(self._words) - 1)
        is_sent = self._words[places] == words
        return is_sent, places[is_sent]

    def _new_meanings(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        new = np.flatnonzero(~self.holds)
        for topic, meaning in zip(self._sent.topics[new].tolist(), self._sent.meanings[new].tolist(), strict=True):
            found.setdefault(topic, set()).add(meaning)
        return found

    def _is_open(self, topic: int) -> bool:
        return not self._newcomers[topic] <= self.known.get(topic, set())

    def _look_through(self) -> None:
        """One pass over the topics of state; whose they are is read of few rows."""
        numbers = list(self._newcomers)
        names = self._sent.names.take(pa.array(numbers))
        for table in self._reader.pieces(_TOLD):
            found = pc.index_in(as_compared(pc.list_element(table.column("topics"), 0)), value_set=names)
            is_sent, _ = self._places(table)
            rows = np.flatnonzero(np.asarray(found.is_valid()) & ~is_sent)
            if not len(rows):
                continue
            topics = np.array(numbers, dtype=np.int64)[found.take(pa.array(rows)).to_numpy()]
            # Many may share a topic on purpose; as a rule the first one of each shows that.
            first = np.unique(topics, return_index=True)[1]
            for chosen in (first, np.delete(np.arange(len(rows)), first)):
                open_rows = [place for place in chosen.tolist() if self._is_open(int(topics[place]))]
                self._note(table.take(pa.array(rows[open_rows], pa.int64())), topics[open_rows].tolist())

    def _note(self, rows: Any, topics: list[int]) -> None:
        if not topics:
            return
        told = self._reader.of_entities(rows.column("entity_hash"), ["identity_hash", "identity", "topics"])
        whose = {row["identity_hash"]: row for row in told.to_pylist()}
        for topic, hashed in zip(topics, rows.column("identity_hash").to_pylist(), strict=True):
            row = whose[hashed]
            meaning = self._meanings.of_key(row["identity"], row["topics"])
            if meaning in self._newcomers[topic]:
                self.known.setdefault(topic, set()).add(meaning)
            elif meaning is not None:
                self.foreign.setdefault(topic, Holder(row["identity"].decode(), row["topics"][0]))
