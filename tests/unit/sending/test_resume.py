"""Several instances send one registry's log: which of its transactions an outbox may still send."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contexture.errors import DefectError
from contexture.kafka import SequenceTakenError
from contexture.sending import LedgerEntry
from contexture.sending.resume import ResumePoint, find_resume_point
from contexture.sending.testing import MemoryShard, OutboxRow
from contexture.storage.manifests import RegistryPart

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ROWS = [OutboxRow("structures", b"urn", b"v") for _ in range(9)]


def part(transaction: int, id: int, *, deletions: bool = False) -> RegistryPart:
    """Each part has three records."""
    return RegistryPart(transaction=transaction, first_position=3 * transaction, id=id, deletions=deletions, at=NOON)


# Transaction 12 of the registry added and deleted.
CHANGES = MemoryShard(
    ROWS, outbox_id="own", sequence=5, registry=(part(0, 11), part(1, 12), part(2, 12, deletions=True))
)
FLUSH = MemoryShard(ROWS[:3], outbox_id="own", sequence=5, registry=(part(0, 11),), flush=True)


def row(
    source: int | None, *, deletions: bool = False, outbox: str = "other", sequence: int = 9, position: int = 7
) -> LedgerEntry:
    return LedgerEntry(outbox, sequence, position, 1, 1, 1, source, NOON, deletions)


def test_nothing_sent_yet_begins_at_the_beginning() -> None:
    assert find_resume_point(CHANGES, None) == ResumePoint()


@pytest.mark.parametrize(
    ("source", "deletions", "position", "transactions"),
    [
        (10, True, 0, 0),
        (11, False, 3, 1),
        (11, True, 3, 1),
        (12, False, 6, 2),
        (12, True, 9, 3),
        (40, False, 9, 3),
    ],
)
def test_what_the_registry_did_and_another_outbox_sent_is_left_out(
    source: int, deletions: bool, position: int, transactions: int
) -> None:
    start = find_resume_point(CHANGES, row(source, deletions=deletions))
    assert start == ResumePoint(position, transactions, place=(source, deletions))


@pytest.mark.parametrize("sequence", [1, 5, 9])
def test_sequences_decide_nothing_where_the_registry_numbers_its_transactions(sequence: int) -> None:
    assert find_resume_point(CHANGES, row(11, sequence=sequence)).position == 3


def test_its_own_outbox_goes_on_by_position() -> None:
    entry = row(11, outbox="own", sequence=5, position=3)
    assert find_resume_point(CHANGES, entry) == ResumePoint(3, 2, own=True, place=(11, False))


@pytest.mark.parametrize(("source", "superseded"), [(10, False), (11, False), (12, True)])
def test_a_flush_is_sent_whole_unless_something_later_was_sent(source: int, superseded: bool) -> None:
    assert find_resume_point(FLUSH, row(source, deletions=True)) == ResumePoint(
        superseded=superseded, place=(source, True)
    )


@pytest.mark.parametrize(("sequence", "superseded"), [(4, False), (6, True)])
def test_a_ledger_without_registry_transactions_is_compared_by_sequence(sequence: int, superseded: bool) -> None:
    assert find_resume_point(CHANGES, row(None, sequence=sequence)) == ResumePoint(superseded=superseded)
    assert find_resume_point(MemoryShard(ROWS, sequence=5), row(12, sequence=sequence)) == ResumePoint(
        superseded=superseded
    )


def test_another_outbox_of_the_same_sequence_stops_one_without_registry_transactions() -> None:
    with pytest.raises(SequenceTakenError, match="same sequence 5"):
        find_resume_point(MemoryShard(ROWS, outbox_id="own", sequence=5), row(None, sequence=5))


def test_a_backfill_is_alone() -> None:
    assert find_resume_point(CHANGES, row(40), alone=True) == ResumePoint()


@pytest.mark.parametrize(
    "parts",
    [
        (part(0, 12), part(1, 11)),
        (part(0, 12, deletions=True), part(1, 12)),
        (part(0, 11), part(1, 11)),
        (part(0, 11), part(2, 12)),
        (part(1, 11),),
    ],
    ids=["falling", "deletions first", "twice", "hole", "not from the start"],
)
def test_parts_out_of_the_registrys_order_are_never_sent(parts: tuple[RegistryPart, ...]) -> None:
    with pytest.raises(DefectError, match="not in the registry's order"):
        find_resume_point(MemoryShard(ROWS, registry=parts), None)


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), unique=True, min_size=1), st.data())
def test_two_outboxes_together_send_each_transaction_once(places: list[tuple[int, bool]], data: st.DataObject) -> None:
    """Whatever range of the log each has, what both send in order is the log without a repetition."""
    log = sorted(places)
    sent: list[tuple[int, bool]] = []
    for outbox in ("one", "two", "three"):
        last = data.draw(st.integers(1, len(log)))
        first = data.draw(st.integers(0, min(last, len(sent))))
        parts = tuple(part(number, id, deletions=gone) for number, (id, gone) in enumerate(log[first:last]))
        shard = MemoryShard(ROWS[:1] * 3 * len(parts), outbox_id=outbox, registry=parts)
        entry = row(sent[-1][0], deletions=sent[-1][1]) if sent else None
        sent += log[first:last][find_resume_point(shard, entry).transactions :]
    assert sent == log[: len(sent)]
