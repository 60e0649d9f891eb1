"""Events whose topic belongs to another identity, found within the run and against state.

The driver compares the topics of the events that are sent, over narrow columns. It reads only the state of the entities
that are sent. The other topics of state are searched only when an identity gets a topic that it did not have before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from contexture.publications import NgsiPublication
from contexture.records.changes import ChangeKind
from contexture.records.changes.identity_hashes import hash_words
from contexture.records.topics.collisions import IdentityIndex, mark_collisions
from contexture.storage.schemas import COLLISIONS, QUARANTINE
from contexture.storage.state import StateReader
from spark_jobs.shared.context import PART_BITS, StageContext


class SentTopics:
    """The events of a snapshot that will be sent.

    Args:
        snapshot: rows in order of events, with `verdict`, `identity_hash`, `entity_hash`, `topic` and `meaning`.

    Attributes:
        rows: their rows in the snapshot.
        written: their topics.
        names: the different topics, in the form in which brokers compare them.
        topics: the number of each event's topic in `names`.
    """

    def __init__(self, snapshot: Any) -> None:
        self.rows = np.flatnonzero(np.asarray(pc.equal(snapshot.column("verdict"), ChangeKind.SEND)))
        self._sent = snapshot.take(pa.array(self.rows))
        self.written = self._sent.column("topic").combine_chunks()
        encoded = metric_names(self.written).dictionary_encode()
        self.names = encoded.dictionary
        self.topics = encoded.indices.to_numpy().astype(np.int64)

    @property
    def identities(self) -> Any:
        """The identity hash of each event."""
        return self._sent.column("identity_hash")

    @property
    def entities(self) -> Any:
        """The entity hash of each event."""
        return self._sent.column("entity_hash")

    @cached_property
    def meanings(self) -> Any:
        """The number of what each event's topic represents; that of the identity itself if the event has none."""
        own = pa.array(hash_words(self.identities)[0].view(np.int64))
        return pc.coalesce(self._sent.column("meaning").combine_chunks(), own).to_numpy()


def metric_names(topics: Any) -> Any:
    """Converts topics to the form that brokers compare (`contexture.records.topics.collisions.metric_name`)."""
    compared = pc.replace_substring(topics, ".", "_")
    return compared.combine_chunks() if isinstance(compared, pa.ChunkedArray) else compared


_COLUMNS = ["identity_hash", "entity_hash", "topics"]


@dataclass(frozen=True, slots=True)
class TopicOwner:
    """An identity (a JSON array, as in keys) to which a topic belongs in state, and the topic as it is written."""

    identity: str
    topic: str


class TopicOwners:
    """The identities to which the topics of one run belong in state.

    Args:
        reader: the state.
        meanings: those of the publication.
        sent: the events that will be sent.

    Attributes:
        owns: for each event, whether its identity had its topic before.
        known: by the number of a topic, the meanings of newcomers that other identities of state have there too.
        foreign: by the number of a topic, an owner that the run does not send to it; only of topics that get a new
            meaning.
    """

    def __init__(self, reader: StateReader, meanings: IdentityIndex, sent: SentTopics) -> None:
        self._reader, self._meanings, self._sent = reader, meanings, sent
        self.owns = np.zeros(len(sent.rows), dtype=np.bool_) if reader.is_empty else self._find_owned()
        self.known: dict[int, set[int]] = {}
        self.foreign: dict[int, TopicOwner] = {}
        self._newcomers = {} if reader.is_empty else self._new_meanings()
        if self._newcomers:
            self._search_state()
            self.foreign = {topic: owner for topic, owner in self.foreign.items() if self._is_open(topic)}

    def _find_owned(self) -> Any:
        self._words, self._first, self._of = np.unique(
            hash_words(self._sent.identities)[0], return_index=True, return_inverse=True
        )
        owned = np.zeros(len(self._words), dtype=np.bool_)
        for table in self._state_rows():
            is_sent, places = self._places(table)
            topics = pc.list_element(table.column("topics").filter(pa.array(is_sent)), 0)
            same = pc.equal(topics.combine_chunks(), self._sent.written.take(pa.array(self._first[places])))
            owned[places] |= np.asarray(same)
        return owned[self._of]

    def _state_rows(self) -> Iterator[Any]:
        """Yields the state rows of the entities that are sent, and possibly others."""
        entities = self._sent.entities
        if self._reader.groups_of(entities) < self._reader.groups:
            yield self._reader.of_entities(entities, _COLUMNS)
        else:
            yield from self._reader.pieces(_COLUMNS)

    def _places(self, table: Any) -> tuple[Any, Any]:
        """Returns which rows of state have identities that are sent, and the places of these identities."""
        words = hash_words(table.column("identity_hash"))[0]
        places = np.minimum(np.searchsorted(self._words, words), len(self._words) - 1)
        is_sent = self._words[places] == words
        return is_sent, places[is_sent]

    def _new_meanings(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        new = np.flatnonzero(~self.owns)
        for topic, meaning in zip(self._sent.topics[new].tolist(), self._sent.meanings[new].tolist(), strict=True):
            found.setdefault(topic, set()).add(meaning)
        return found

    def _is_open(self, topic: int) -> bool:
        return not self._newcomers[topic] <= self.known.get(topic, set())

    def _search_state(self) -> None:
        """Searches the topics of state in one pass; the identities are read of few rows only."""
        numbers = list(self._newcomers)
        names = self._sent.names.take(pa.array(numbers))
        for table in self._reader.pieces(_COLUMNS):
            found = pc.index_in(metric_names(pc.list_element(table.column("topics"), 0)), value_set=names)
            is_sent, _ = self._places(table)
            rows = np.flatnonzero(np.asarray(found.is_valid()) & ~is_sent)
            if not len(rows):
                continue
            topics = np.array(numbers, dtype=np.int64)[found.take(pa.array(rows)).to_numpy()]
            # Many identities may share a topic on purpose; usually the first row of each topic shows that.
            first = np.unique(topics, return_index=True)[1]
            for chosen in (first, np.delete(np.arange(len(rows)), first)):
                open_rows = [place for place in chosen.tolist() if self._is_open(int(topics[place]))]
                self._add_owners(table.take(pa.array(rows[open_rows], pa.int64())), topics[open_rows].tolist())

    def _add_owners(self, rows: Any, topics: list[int]) -> None:
        if not topics:
            return
        stored = self._reader.of_entities(rows.column("entity_hash"), ["identity_hash", "identity", "topics"])
        by_hash = {row["identity_hash"]: row for row in stored.to_pylist()}
        for topic, hashed in zip(topics, rows.column("identity_hash").to_pylist(), strict=True):
            row = by_hash[hashed]
            meaning = self._meanings.of_key(row["identity"], row["topics"])
            if meaning in self._newcomers[topic]:
                self.known.setdefault(topic, set()).add(meaning)
            elif meaning is not None:
                self.foreign.setdefault(topic, TopicOwner(row["identity"].decode(), row["topics"][0]))


RULE = "topic-collision"
_LOGGED = 5
_SHOWN_CHARACTERS = 120
_log = logging.getLogger(__name__)

IdentitiesOf = Callable[[Sequence[int]], Sequence[str]]


class Collision(NamedTuple):
    """An event (its row in the snapshot) whose topic belongs to the holder (an identity, or a row of the snapshot)."""

    row: int
    topic: str
    holder: str | int
    refused: bool


def find_collisions(publication: NgsiPublication, snapshot: Any, reader: StateReader) -> list[Collision]:
    """Finds the events of a snapshot that would be sent to the topic of another identity, by topic.

    A shared topic belongs to the identities that have it in state, or else to the identity that came first. If brokers
    would refuse the topic beside that of the holder, the newcomer is refused whatever `topics.collision` is.

    Args:
        publication: the publication of the run.
        snapshot: rows in order of events, with verdicts, hashes, topics and meanings.
        reader: the state to compare with.
    """
    meanings = IdentityIndex(publication.topics)
    if not meanings.can_collide:
        return []
    sent = SentTopics(snapshot)
    if not len(sent.rows):
        return []
    owners = TopicOwners(reader, meanings, sent)
    shared = np.isin(sent.topics, list(owners.foreign))
    if len(sent.names) < len(sent.rows):
        shared |= mark_collisions(sent.topics, sent.meanings)
    by_topic: dict[int, list[int]] = {}
    for place in np.flatnonzero(shared).tolist():
        by_topic.setdefault(int(sent.topics[place]), []).append(place)
    refuses = publication.topics.collision == "quarantine"
    return [found for topic, places in by_topic.items() for found in _of_topic(topic, places, sent, owners, refuses)]


def _of_topic(
    topic: int, places: Sequence[int], sent: SentTopics, owners: TopicOwners, refuses: bool
) -> Iterator[Collision]:
    meanings = [int(sent.meanings[place]) for place in places]
    owning = {meaning for place, meaning in zip(places, meanings, strict=True) if owners.owns[place]}
    owning |= owners.known.get(topic, set())
    leading = next((place for place, meaning in zip(places, meanings, strict=True) if meaning in owning), None)
    foreign = owners.foreign.get(topic) if leading is None else None
    if leading is None and foreign is None:
        leading = places[0]
    name = foreign.topic if foreign is not None else sent.written[leading].as_py()
    for place, meaning in zip(places, meanings, strict=True):
        if leading is not None and meaning == int(sent.meanings[leading]):
            continue
        written = sent.written[place].as_py()
        holder = foreign.identity if foreign is not None else int(sent.rows[leading])
        yield Collision(int(sent.rows[place]), written, holder, meaning not in owning and (refuses or written != name))


def mark_quarantined(snapshot: Any, rows: Any) -> Any:
    """Returns the snapshot with the verdict of these rows changed to quarantined."""
    if not len(rows):
        return snapshot
    verdicts = np.asarray(snapshot.column("verdict")).copy()
    verdicts[rows] = ChangeKind.QUARANTINED
    refused = np.zeros(snapshot.num_rows, dtype=np.bool_)
    refused[rows] = True
    content = snapshot.column("content_hash")
    content = pc.if_else(pa.array(refused), pa.scalar(None, content.type), content)
    for name, values in (("verdict", pa.array(verdicts)), ("content_hash", content)):
        snapshot = snapshot.set_column(snapshot.schema.get_field_index(name), name, values)
    return snapshot


COLLISIONS_FILE: Final = "collisions.parquet"
"""The events whose topic belongs to another identity; the file exists only if there are any."""


def write_collisions(context: StageContext, snapshot: Any, found: Sequence[Collision]) -> None:
    """Writes the collisions beside the outbox and the refused events to quarantine, and logs the first few."""
    if not found:
        return
    events = snapshot.column("event").to_numpy()
    names = _identities(context, events, found)
    rows = [(one.topic, names[one.row], _named(one.holder, names), one.refused) for one in found]
    table = pa.table(dict(zip(COLLISIONS.names, map(list, zip(*rows, strict=True)), strict=True)), schema=COLLISIONS)
    context.records.write_table(COLLISIONS_FILE, table)
    for topic, identity, holder, refused in rows[:_LOGGED]:
        _log.warning("%s and %s share the topic %s%s", identity, holder, topic, ": refused" if refused else "")
    refused_rows = [(int(events[one.row]), row) for one, row in zip(found, rows, strict=True) if one.refused]
    if refused_rows:
        _quarantine(context, refused_rows)


def _named(holder: str | int, names: dict[int, str]) -> str:
    return holder if isinstance(holder, str) else names[holder]


def _identities(context: StageContext, events: Any, found: Sequence[Collision]) -> dict[int, str]:
    """Returns the identities of the rows that collide."""
    rows = sorted({one.row for one in found} | {one.holder for one in found if isinstance(one.holder, int)})
    dataset = context.work.folder("evaluated").dataset()
    chosen = ds.field("event").isin(pa.array(events[rows]))
    table = dataset.to_table(columns=["event", "identity"], filter=chosen)
    by_event = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return {row: by_event[int(events[row])] for row in rows}


def _quarantine(context: StageContext, refused: Sequence[tuple[int, tuple[str, str, str, bool]]]) -> None:
    ordinals = pa.array([event >> PART_BITS for event, _ in refused], pa.int64())
    dataset = context.landing.dataset(skips_others=True)
    landed = dataset.to_table(filter=ds.field("ordinal").isin(ordinals))
    rows = landed.take(pc.index_in(ordinals, value_set=landed.column("ordinal")))
    columns = {
        "rule": [RULE] * len(refused),
        "severity": ["error"] * len(refused),
        "message": [f"the topic {topic} belongs to {_short(holder)}" for _, (topic, _, holder, _) in refused],
    }
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    context.quarantine.write_table(COLLISIONS_FILE, rows.select(QUARANTINE.names).cast(QUARANTINE))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
