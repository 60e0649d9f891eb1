"""Where the sending of a shard begins: after what is in Kafka already, whoever sent it.

Two rules decide between outboxes. Those of a registry that numbers its transactions are compared by these numbers
alone: of instances that share nothing but Kafka, each tells what the others have not told. All others are compared by
their sequence, which instances on one storage have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from contexture.errors import DefectError
from contexture.kafka.errors import SequenceTakenError
from contexture.sending.ledger_entry import LedgerEntry
from contexture.sending.sending_ports import ShardReader

if TYPE_CHECKING:
    from contexture.storage.manifests import RegistryPart

Place = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class Start:
    """Where sending begins.

    Attributes:
        position: of the first record to send.
        transactions: how many Kafka transactions of the shard lie before it.
        own: an earlier sending of this very outbox got that far.
        superseded: something later was sent: nothing of the shard may be.
        place: how far the registry's log is told already; None where that is not known.
    """

    position: int = 0
    transactions: int = 0
    own: bool = False
    superseded: bool = False
    place: Place | None = None


def start_of(reader: ShardReader, entry: LedgerEntry | None, *, alone: bool = False) -> Start:
    """Where the sending of a shard begins.

    Args:
        reader: the shard.
        entry: the ledger's last row of it.
        alone: nobody else's outbox can stand in the way (a backfill).

    Raises:
        SequenceTakenError: another outbox of the same sequence was sent, and nothing else tells which is later.
        DefectError: the outbox's registry transactions are not in order.
    """
    check_parts(reader.registry)
    if entry is None:
        return Start()
    if entry.outbox == reader.outbox_id:
        return Start(entry.position, entry.transaction + 1, own=True, place=entry.source_place)
    if alone:
        return Start()
    if reader.registry and entry.source_place is not None:
        return start_after(entry.source_place, reader.registry, records=reader.records, flush=reader.flush)
    if entry.sequence == reader.sequence:
        raise sequence_taken(entry, reader.outbox_id)
    return Start(superseded=entry.sequence > reader.sequence)


def start_after(place: Place, parts: Sequence[RegistryPart], *, records: int, flush: bool) -> Start:
    """Where an outbox of registry transactions begins when the log is told up to a place.

    A flush is sent whole unless something later than what it shows was told; of changes, what is told is left out.

    Args:
        place: registry transaction, and whether its deletions are told.
        parts: one for each Kafka transaction, in order.
        records: how many the shard holds.
        flush: whether they are all that the registry holds.
    """
    if flush:
        return Start(superseded=parts[0].id < place[0], place=place)
    told = sum(part.place <= place for part in parts)
    return Start(parts[told].first_position if told < len(parts) else records, told, place=place)


def check_parts(parts: Sequence[RegistryPart]) -> None:
    """Sees that the parts are those of transactions 0, 1, 2 …, each later in the registry's order.

    Raises:
        DefectError: they are not.
    """
    numbered = [part.transaction for part in parts] == list(range(len(parts)))
    rising = all(
        before.place < after.place and before.first_position < after.first_position for before, after in pairwise(parts)
    )
    if not (numbered and rising and (not parts or parts[0].first_position == 0)):
        raise DefectError(
            "the registry transactions of an outbox are not in the registry's order",
            next_step="do not send it: abandon the outbox and report this (its manifest is damaged)",
        )


def sequence_taken(entry: LedgerEntry, outbox: str) -> SequenceTakenError:
    """The error for an outbox whose place in the order another one took."""
    return SequenceTakenError(
        f"outbox {entry.outbox} was sent under the same sequence {entry.sequence}",
        next_step=f"abandon this one (`contexture outbox abandon {outbox} --reason …`): "
        "the next run compares anew and sends everything",
        outbox=outbox,
    )
