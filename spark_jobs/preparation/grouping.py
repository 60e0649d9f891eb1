"""From rendered events to records: one each, or the lines of a sub-batch in one."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from contexture.messages.cygnus_lines import join

_RECORD = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("batch", pa.int64()),
        pa.field("sub_batch", pa.int64()),
        pa.field("events", pa.int32()),
    ]
)


class SingleRecords:
    """Each event is a record of its own, once for each of its topics."""

    def __init__(self, batch_starts: Any) -> None:
        self._starts = batch_starts
        self._seen = _SubBatches()

    def records(self, rendered: Any) -> Any:
        """The records of rendered events, in order."""
        topics = rendered.column("topics").combine_chunks()
        parents = pa.compute.list_parent_indices(topics)
        rows = rendered.take(parents)
        batches = np.searchsorted(self._starts, rows.column("event").to_numpy(), side="right") - 1
        names = pa.compute.list_flatten(topics)
        return _table(
            topic=names,
            key=rows.column("key"),
            value=rows.column("value"),
            timestamp=rows.column("timestamp"),
            batch=pa.array(batches),
            sub_batch=pa.array(self._seen.number(batches, names)),
            events=pa.array(np.ones(len(names), dtype=np.int32)),
        )

    def rest(self) -> Any:
        """Nothing is held back."""
        return None

    def deletions(self, vanished: Any, moment: datetime) -> Any:
        """Tombstones of state rows, each in a batch of its own behind all others."""
        return _tombstones(vanished, moment, len(self._starts))


class LineGrouper:
    """The events of a batch for one topic are the lines of one record, in the order the topics first appear."""

    def __init__(self, batch_starts: Any) -> None:
        self._starts = batch_starts
        self._batch = -1
        self._groups: dict[str, list[tuple[bytes | None, bytes, object]]] = {}
        self._done: list[dict[str, object]] = []

    def records(self, rendered: Any) -> Any:
        """The records of all batches that are complete so far."""
        batches = np.searchsorted(self._starts, rendered.column("event").to_numpy(), side="right") - 1
        columns = (rendered.column(name).to_pylist() for name in ("topics", "key", "value", "timestamp"))
        for batch, topics, key, line, moment in zip(batches.tolist(), *columns, strict=True):
            if batch != self._batch:
                self._close()
                self._batch = batch
            for topic in topics:
                self._groups.setdefault(topic, []).append((key, line, moment))
        return self._take()

    def rest(self) -> Any:
        """The records of the last batch."""
        self._close()
        return self._take()

    def deletions(self, vanished: Any, moment: datetime) -> Any:
        """Tombstones of state rows, each in a batch of its own behind all others."""
        return _tombstones(vanished, moment, len(self._starts))

    def _close(self) -> None:
        for sub_batch, (topic, lines) in enumerate(self._groups.items()):
            key, _, moment = lines[-1]
            value = join(line for _, line, _ in lines)
            record = {"topic": topic, "key": key, "value": value, "timestamp": moment}
            self._done.append({**record, "batch": self._batch, "sub_batch": sub_batch, "events": len(lines)})
        self._groups = {}

    def _take(self) -> Any:
        done, self._done = self._done, []
        return pa.Table.from_pylist(done, schema=_RECORD)


class _SubBatches:
    """Numbers the topics of each batch in the order they first appear, also across calls."""

    def __init__(self) -> None:
        self._batch = -1
        self._numbers: dict[str, int] = {}

    def number(self, batches: Any, topics: Any) -> Any:
        """The sub-batch of each record."""
        if len(batches) > 1 and (batches[1:] != batches[:-1]).all() and batches[0] != self._batch:
            self._batch, self._numbers = int(batches[-1]), {topics[-1].as_py(): 0}
            return np.zeros(len(batches), dtype=np.int64)
        numbers = []
        for batch, topic in zip(batches.tolist(), topics.to_pylist(), strict=True):
            if batch != self._batch:
                self._batch, self._numbers = batch, {}
            numbers.append(self._numbers.setdefault(topic, len(self._numbers)))
        return np.array(numbers, dtype=np.int64)


def _tombstones(vanished: Any, moment: datetime, first_batch: int) -> Any:
    topics = vanished.column("topics").combine_chunks()
    rows = vanished.take(pa.compute.list_parent_indices(topics))
    count = rows.num_rows
    stamp = pa.array([moment] * count, pa.timestamp("us", tz="UTC"))
    return _table(
        topic=pa.compute.list_flatten(topics),
        key=rows.column("key"),
        value=pa.nulls(count, pa.binary()),
        timestamp=pa.compute.cast(stamp, pa.timestamp("ms", tz="UTC"), safe=False),
        batch=pa.array(np.arange(first_batch, first_batch + count)),
        sub_batch=pa.array(np.zeros(count, dtype=np.int64)),
        events=pa.array(np.ones(count, dtype=np.int32)),
    )


def _table(**columns: Any) -> Any:
    return pa.table([columns[name] for name in _RECORD.names], names=_RECORD.names).cast(_RECORD)
