"""How many transactions of an outbox are in the topics, as far as the topics show it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contexture.sending.ledger_rebuild import OutboxRecord, SentTransactions, digest_of, transactions_sent


def record(transaction: int, key: str | None, value: str) -> OutboxRecord:
    return OutboxRecord(transaction, ("cars", None if key is None else key.encode()), digest_of(value.encode(), ()))


def newest(**values: str) -> dict[tuple[str, bytes | None], bytes]:
    return {("cars", key.encode()): digest_of(value.encode(), ()) for key, value in values.items()}


OUTBOX = [record(0, "a", "a1"), record(0, "b", "b1"), record(1, "c", "c1"), record(2, "d", "d1")]


def sent(found: dict[tuple[str, bytes | None], bytes], *, differs: bool = True) -> SentTransactions:
    return transactions_sent(OUTBOX, found, set(), transactions=3, differs=differs)


def test_nothing_was_sent_when_every_key_holds_something_else() -> None:
    assert sent(newest(a="a0", b="b0", c="c0")) == SentTransactions(0, 0)


def test_one_record_shows_its_transaction_and_a_missing_one_ends_them() -> None:
    assert sent(newest(a="a1", b="b1", c="c1", d="d0")) == SentTransactions(2, 2)
    assert sent(newest(a="a1", b="b1", c="c1", d="d1")) == SentTransactions(3, 3)


def test_what_is_known_by_other_signs_counts() -> None:
    # Of transaction 1 the only record is a dead letter, and of the others nothing is known.
    others = [each for each in OUTBOX if each.transaction != 1]
    found = transactions_sent(others, newest(a="a1", b="b1", d="d0"), set(), transactions=3, differs=False, known=2)
    assert found == SentTransactions(2, 2)


def test_of_a_full_run_records_may_be_as_they_were_before() -> None:
    assert sent(newest(a="a1", b="b1", c="c1", d="d0"), differs=False) == SentTransactions(0, 2)


def test_a_value_that_comes_back_may_be_the_old_one() -> None:
    there_and_back = [record(0, "a", "open"), record(1, "a", "closed"), record(2, "b", "b1")]

    found = transactions_sent(there_and_back, newest(a="closed", b="b0"), set(), transactions=3, differs=True)

    assert found == SentTransactions(0, 2)


def test_records_without_keys_can_only_show_that_nothing_was_sent() -> None:
    keyless = [record(0, None, "x"), record(1, None, "y")]
    there = {digest_of(b"x", ())}

    assert transactions_sent(keyless, {}, there, transactions=2, differs=True) == SentTransactions(0, 1)


def test_a_tombstone_is_no_empty_value_and_headers_count() -> None:
    assert digest_of(None, ()) != digest_of(b"", ())
    assert digest_of(b"x", [("a", b"1")]) != digest_of(b"x", [("a", b"2")])
    assert digest_of(b"x", [("a", b"1"), ("b", None)]) == digest_of(b"x", [("b", None), ("a", b"1")])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=12),
    st.integers(0, 12),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
)
def test_the_truth_lies_between_certain_and_possible(
    rows: list[tuple[str, int]], sent_count: int, before: dict[str, int]
) -> None:
    state = dict(before)
    outbox = []
    for key, value in rows:
        # An outbox of changes holds nothing that is there already.
        if state.get(key) != value:
            state[key] = value
            outbox.append(record(len(outbox) // 2, key, f"{key}{value}"))
    total = (len(outbox) + 1) // 2
    truth = min(sent_count, total)
    log = {key: f"{key}{value}" for key, value in before.items()}
    contents = {digest_of(f"{key}{value}".encode(), ()): f"{key}{value}" for key in "abc" for value in range(4)}
    log |= {str(each.place[1], "ascii"): contents[each.digest] for each in outbox if each.transaction < truth}  # type: ignore[arg-type]

    found = transactions_sent(outbox, newest(**log), set(), transactions=total, differs=True)

    assert found.certain <= truth <= found.possible
