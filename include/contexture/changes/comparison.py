"""What a snapshot means for the target: which events repeat, which identities are gone, which marks change.

Works on narrow Arrow tables (hashes, times and verdicts, never bodies), one row per event, so that a million
identities cost some tens of megabytes. Nothing here reads or writes.

The snapshot's columns: `ordinal`, `part`, `verdict`, `identity_hash`, `entity_hash`, `content_hash`, `modified_at`.
The state's columns: `identity_hash`, `entity_hash`, `missing_since`, `withheld`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Verdict(IntEnum):
    """What prepare found about one event of the snapshot."""

    SEND = 0
    UNCHANGED = 1
    QUARANTINED = 2
    PRESENT = 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """Row numbers into the snapshot (`superseded`, `conflicting`) and into the state (all others).

    Attributes:
        superseded: events that repeat an identity which a newer row of the snapshot tells better.
        conflicting: events that tell other content for the same identity and the same time; none of them is right.
        first_absent: held identities seen missing for the first time.
        vanished: held identities that were missing before and are missing again: their tombstones are due.
        returned: held identities whose mark of absence no longer holds.
        withheld: held identities whose newest content was refused; the target keeps what it has.
        released: held identities whose newest content is accepted again and equals what the target has.
    """

    superseded: Any
    conflicting: Any
    first_absent: Any
    vanished: Any
    returned: Any
    withheld: Any
    released: Any


def compare(snapshot: Any, state: Any, *, tells_absence: bool) -> Comparison:
    """Compares one snapshot with state.

    Args:
        snapshot: the evaluated snapshot, one row per event or sighting.
        state: the state's rows.
        tells_absence: the snapshot is complete, so that what it lacks is gone. An empty snapshot never tells absence.
    """
    superseded, conflicting = _repeats(snapshot)
    seen = snapshot.column("identity_hash")
    absent = _absent(snapshot, state) if tells_absence and snapshot.num_rows else _nothing(state)
    marked = state.column("missing_since").is_valid()
    verdicts = snapshot.column("verdict")
    refused_identities = seen.filter(pc.equal(verdicts, Verdict.QUARANTINED))
    # A refused entity withholds its attributes too; there its own identity stands for all of them.
    refused = pc.or_(_in(state, refused_identities), _in(state, refused_identities, "entity_hash"))
    accepted = _in(state, seen.filter(pc.less_equal(verdicts, Verdict.UNCHANGED)))
    sighted = pc.or_(_in(state, seen), _in(state, _entities(snapshot, Verdict.PRESENT), "entity_hash"))
    return Comparison(
        superseded=superseded,
        conflicting=conflicting,
        first_absent=_rows(pc.and_(absent, pc.invert(marked))),
        vanished=_rows(pc.and_(absent, marked)),
        returned=_rows(pc.and_(marked, pc.and_(sighted, pc.invert(absent)))),
        withheld=_rows(pc.and_(refused, pc.invert(state.column("withheld")))),
        released=_rows(pc.and_(accepted, state.column("withheld"))),
    )


def _absent(snapshot: Any, state: Any) -> Any:
    """Held rows whose entity is not in the snapshot, or whose entity was read whole without them."""
    seen_entities = snapshot.column("entity_hash")
    gone = pc.invert(_in(state, seen_entities, "entity_hash"))
    read = pc.less_equal(snapshot.column("verdict"), Verdict.UNCHANGED)
    read_entities = pc.unique(seen_entities.filter(read))
    refused = pc.unique(_entities(snapshot, Verdict.QUARANTINED))
    trusted = read_entities.filter(pc.invert(pc.is_in(read_entities, value_set=refused)))
    of_read = _in(state, trusted, "entity_hash")
    without = pc.invert(_in(state, snapshot.column("identity_hash")))
    return pc.or_(gone, pc.and_(of_read, without))


def _entities(snapshot: Any, verdict: Verdict) -> Any:
    return snapshot.column("entity_hash").filter(pc.equal(snapshot.column("verdict"), verdict))


def _in(state: Any, hashes: Any, column: str = "identity_hash") -> Any:
    return pc.is_in(state.column(column), value_set=pc.unique(hashes))


def _nothing(state: Any) -> Any:
    return pa.array(np.zeros(state.num_rows, dtype=bool))


def _rows(mask: Any) -> Any:
    return np.flatnonzero(np.asarray(mask))


def _repeats(snapshot: Any) -> tuple[Any, Any]:
    """Rows that lose against another row of the same identity, and rows that contradict each other."""
    events = np.flatnonzero(np.asarray(pc.not_equal(snapshot.column("verdict"), Verdict.PRESENT)))
    hashes = snapshot.column("identity_hash").take(pa.array(events))
    counts = pc.value_counts(hashes)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if not len(repeated):
        return events[:0], events[:0]
    rows = events[np.asarray(pc.is_in(hashes, value_set=repeated))]
    return _losers(snapshot, rows)


def _losers(snapshot: Any, rows: Any) -> tuple[Any, Any]:
    """Newest modification wins, then the later row; other content at the same time contradicts (few rows get here)."""
    columns = ["identity_hash", "modified_at", "content_hash", "verdict"]
    picked = snapshot.select(columns).take(pa.array(rows)).to_pylist()
    groups: dict[bytes, list[tuple[tuple[bool, object, int], int, bytes]]] = {}
    for row, item in zip(rows.tolist(), picked, strict=True):
        age = (item["modified_at"] is not None, item["modified_at"], row)
        groups.setdefault(item["identity_hash"], []).append((age, row, item["content_hash"]))
    superseded: list[int] = []
    conflicting: list[int] = []
    for group in groups.values():
        ordered = sorted(group, key=lambda entry: (entry[0][0], entry[0][1] or 0, entry[0][2]))
        newest = [entry for entry in ordered if entry[0][:2] == ordered[-1][0][:2]]
        contradict = len({content for _, _, content in newest}) > 1
        superseded += [row for _, row, _ in ordered if not contradict or row not in {r for _, r, _ in newest}]
        if contradict:
            conflicting += [row for _, row, _ in newest]
        else:
            superseded.remove(ordered[-1][1])
    return np.array(sorted(superseded), dtype=np.int64), np.array(sorted(conflicting), dtype=np.int64)


__all__ = ["Comparison", "Verdict", "compare"]
