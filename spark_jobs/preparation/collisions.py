"""Events whose topic is another identity's, found in the run and against state.

One look at the topics of what is sent, all narrow columns on the driver. State is asked only for the entities that are
sent; its other topics are looked through only when something gets a topic that it did not have before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from contexture.publications import Publication
from contexture.records.changes import Verdict
from contexture.records.topics.collisions import Meanings, colliding
from contexture.storage.home import Storage
from contexture.storage.schemas import COLLISIONS, QUARANTINE
from contexture.storage.state import StateReader
from spark_jobs.preparation.holders import Holders
from spark_jobs.preparation.sent_topics import SentTopics
from spark_jobs.preparation.settings import PART_BITS, Preparation

RULE = "topic-collision"
_LOGGED = 5
_SHOWN_CHARACTERS = 120
_log = logging.getLogger(__name__)

IdentitiesOf = Callable[[Sequence[int]], Sequence[str]]


class Collision(NamedTuple):
    """An event (its row in the snapshot) whose topic is the holder's (an identity, or a row likewise)."""

    row: int
    topic: str
    holder: str | int
    refused: bool


def find_collisions(publication: Publication, snapshot: Any, reader: StateReader) -> list[Collision]:
    """The events of a snapshot that are to be sent to another identity's topic, by topic.

    Of the identities that share a topic those that state has there hold it; else the one that came first does. Where
    brokers would refuse the topic beside the holder's, the newcomer is refused whatever `topics.collision` says.

    Args:
        publication: whose.
        snapshot: its rows in order of events; verdicts, hashes, topics and meanings.
        reader: the state that it is compared with.
    """
    meanings = Meanings(publication.topics)
    if not meanings.can_collide:
        return []
    sent = SentTopics(snapshot)
    if not len(sent.rows):
        return []
    holders = Holders(reader, meanings, sent)
    shared = np.isin(sent.topics, list(holders.foreign))
    if len(sent.names) < len(sent.rows):
        shared |= colliding(sent.topics, sent.meanings)
    by_topic: dict[int, list[int]] = {}
    for place in np.flatnonzero(shared).tolist():
        by_topic.setdefault(int(sent.topics[place]), []).append(place)
    refuses = publication.topics.collision == "quarantine"
    return [found for topic, places in by_topic.items() for found in _of_topic(topic, places, sent, holders, refuses)]


def _of_topic(
    topic: int, places: Sequence[int], sent: SentTopics, holders: Holders, refuses: bool
) -> Iterator[Collision]:
    meanings = [int(sent.meanings[place]) for place in places]
    held = {meaning for place, meaning in zip(places, meanings, strict=True) if holders.holds[place]}
    held |= holders.known.get(topic, set())
    leading = next((place for place, meaning in zip(places, meanings, strict=True) if meaning in held), None)
    foreign = holders.foreign.get(topic) if leading is None else None
    if leading is None and foreign is None:
        leading = places[0]
    name = foreign.topic if foreign is not None else sent.written[leading].as_py()
    for place, meaning in zip(places, meanings, strict=True):
        if leading is not None and meaning == int(sent.meanings[leading]):
            continue
        written = sent.written[place].as_py()
        holder = foreign.identity if foreign is not None else int(sent.rows[leading])
        yield Collision(int(sent.rows[place]), written, holder, meaning not in held and (refuses or written != name))


def refusing(snapshot: Any, rows: Any) -> Any:
    """The snapshot with these rows as quarantined ones."""
    if not len(rows):
        return snapshot
    verdicts = np.asarray(snapshot.column("verdict")).copy()
    verdicts[rows] = Verdict.QUARANTINED
    refused = np.zeros(snapshot.num_rows, dtype=np.bool_)
    refused[rows] = True
    content = snapshot.column("content_hash")
    content = pc.if_else(pa.array(refused), pa.scalar(None, content.type), content)
    for name, values in (("verdict", pa.array(verdicts)), ("content_hash", content)):
        snapshot = snapshot.set_column(snapshot.schema.get_field_index(name), name, values)
    return snapshot


def note_collisions(storage: Storage, preparation: Preparation, snapshot: Any, found: Sequence[Collision]) -> None:
    """Writes what collides beside the outbox, and the refused events to quarantine; tells of the first few."""
    if not found:
        return
    events = snapshot.column("event").to_numpy()
    names = _identities(storage, preparation, events, found)
    rows = [(one.topic, names[one.row], _named(one.holder, names), one.refused) for one in found]
    table = pa.table(dict(zip(COLLISIONS.names, map(list, zip(*rows, strict=True)), strict=True)), schema=COLLISIONS)
    with storage.replacing(preparation.folder.collisions(preparation.outbox)) as path:
        pq.write_table(table, path, filesystem=storage.filesystem)
    for topic, identity, holder, refused in rows[:_LOGGED]:
        _log.warning("%s and %s share the topic %s%s", identity, holder, topic, ": refused" if refused else "")
    refused_rows = [(int(events[one.row]), row) for one, row in zip(found, rows, strict=True) if one.refused]
    if refused_rows:
        _quarantine(storage, preparation, refused_rows)


def _named(holder: str | int, names: dict[int, str]) -> str:
    return holder if isinstance(holder, str) else names[holder]


def _identities(storage: Storage, preparation: Preparation, events: Any, found: Sequence[Collision]) -> dict[int, str]:
    """The identities of the rows that take part."""
    rows = sorted({one.row for one in found} | {one.holder for one in found if isinstance(one.holder, int)})
    dataset = ds.dataset(storage.path(f"{preparation.work}/evaluated"), filesystem=storage.filesystem, format="parquet")
    chosen = ds.field("event").isin(pa.array(events[rows]))
    table = dataset.to_table(columns=["event", "identity"], filter=chosen)
    by_event = dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return {row: by_event[int(events[row])] for row in rows}


def _quarantine(
    storage: Storage, preparation: Preparation, refused: Sequence[tuple[int, tuple[str, str, str, bool]]]
) -> None:
    ordinals = pa.array([event >> PART_BITS for event, _ in refused], pa.int64())
    folder = storage.path(preparation.folder.landing(preparation.order.run))
    dataset = ds.dataset(folder, filesystem=storage.filesystem, format="parquet", exclude_invalid_files=True)
    landed = dataset.to_table(filter=ds.field("ordinal").isin(ordinals))
    rows = landed.take(pc.index_in(ordinals, value_set=landed.column("ordinal")))
    columns = {
        "rule": [RULE] * len(refused),
        "severity": ["error"] * len(refused),
        "message": [f"the topic {topic} is that of {_short(holder)}" for _, (topic, _, holder, _) in refused],
    }
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    target = f"{preparation.folder.quarantine(preparation.outbox)}/collisions.parquet"
    with storage.replacing(target) as path:
        pq.write_table(rows.select(QUARANTINE.names).cast(QUARANTINE), path, filesystem=storage.filesystem)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
