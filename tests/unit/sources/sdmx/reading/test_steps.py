"""What the transactions of a log ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from builders.registry import urn
from contexture.sources.sdmx import Selector, select_structures
from contexture.sources.sdmx.reading.steps import (
    FetchRequest,
    LogStep,
    SelectedStructures,
    by_name,
    changed_urns,
    held_before,
    plan_gap_recovery,
    steps,
)
from contexture.sources.sdmx.registry import RegistryTransaction

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
A1, A2, B1 = urn("A", "1.0"), urn("A", "2.0"), urn("B", "1.0")
CONSTRAINT = "urn:sdmx:org.sdmx.infomodel.registry.{}=ECB:CR_EXR(1.0)"
LATEST = (Selector.parse("*=*:*(~)"),)


def change(number: int, *changed: str, deleted: Iterable[str] = ()) -> RegistryTransaction:
    return RegistryTransaction(number, NOON, "Replace", changed, tuple(deleted))


def planned(
    log: Sequence[RegistryTransaction],
    *,
    held: Iterable[str],
    sent: Iterable[str],
    selectors: Sequence[Selector] = (),
    more_to_come: bool = False,
) -> tuple[LogStep, ...]:
    """`held`: after the last transaction."""
    held, names = tuple(held), by_name(sent)
    meaning = SelectedStructures(selectors, (*held, *changed_urns(log).values(), *names.values()))
    before = held_before(log, by_name(held), names)
    return steps(log, meaning, held=before, selected=names, more_to_come=more_to_come)


def required(found: Iterable[LogStep]) -> list[tuple[int, list[str], list[str]]]:
    return [(step.transaction.id, [each.urn for each in step.read], list(step.delete)) for step in found]


def test_what_changed_is_read_and_what_was_deleted_is_deleted() -> None:
    found = planned([change(4, A1, B1), change(5, deleted=[A2])], held=[A1, B1], sent=[A1, A2])

    assert required(found) == [(4, [A1, B1], []), (5, [], [A2])]


def test_what_was_never_sent_needs_no_deletion() -> None:
    assert planned([change(4, deleted=[A1])], held=[], sent=[]) == ()


def test_what_is_not_meant_asks_for_nothing() -> None:
    selectors = (Selector.parse("Codelist=X:B(*)"),)

    assert required(planned([change(4, A1), change(5, B1)], held=[A1, B1], sent=[], selectors=selectors)) == [
        (5, [B1], [])
    ]


def test_a_new_latest_version_takes_over_from_the_one_before() -> None:
    found = planned([change(4, A2)], held=[A1, A2], sent=[A1], selectors=LATEST)

    assert required(found) == [(4, [A2], [A1])]


def test_the_version_before_a_deleted_latest_one_comes_back() -> None:
    found = planned([change(4, deleted=[A2])], held=[A1], sent=[A2], selectors=LATEST)

    assert found == (LogStep(change(4, deleted=[A2]), (FetchRequest(A1),), (A2,)),)


def test_a_change_of_a_version_that_is_not_the_latest_asks_for_nothing() -> None:
    assert planned([change(4, A1)], held=[A1, A2], sent=[A2], selectors=LATEST) == ()


def test_a_version_that_comes_and_goes_leaves_the_one_before() -> None:
    log = [change(4, A2), change(5, deleted=[A2])]

    found = planned(log, held=[A1], sent=[A1], selectors=LATEST)

    assert required(found) == [(4, [A2], [A1]), (5, [A1], [A2])]


def test_what_a_later_transaction_deletes_may_be_gone_when_it_is_read() -> None:
    [added, _] = planned([change(4, A1), change(5, deleted=[A1])], held=[], sent=[])

    assert added.read == (FetchRequest(A1, may_be_gone=True),)


def test_what_the_registry_holds_may_not_be_gone() -> None:
    [step] = planned([change(4, A1)], held=[A1], sent=[])

    assert step.read == (FetchRequest(A1, may_be_gone=False),)


def test_a_version_that_comes_back_may_be_absent_while_the_log_is_incomplete() -> None:
    [step] = planned([change(4, deleted=[A2])], held=[A1], sent=[A2], selectors=LATEST, more_to_come=True)

    assert step.read == (FetchRequest(A1, may_be_gone=True),)


def test_a_structure_is_deleted_by_the_urn_that_was_sent() -> None:
    of_2_1, of_3_0 = CONSTRAINT.format("ContentConstraint"), CONSTRAINT.format("DataConstraint")

    assert required(planned([change(4, deleted=[of_3_0])], held=[], sent=[of_2_1])) == [(4, [], [of_2_1])]


def test_what_a_transaction_replaces_is_not_deleted() -> None:
    assert required(planned([change(4, A1, deleted=[A1])], held=[A1], sent=[A1])) == [(4, [A1], [])]


def test_a_gap_reads_what_was_not_changed_since() -> None:
    log = [change(9, B1)]
    meaning = SelectedStructures((), [A1, A2, B1])

    found = plan_gap_recovery(log, meaning, held=[A1, B1], sent={A2: A2, B1: B1})

    assert found.read == {A1: A1}
    assert found.absent == {A2: A2}
    assert found.selected == {A1: A1, B1: B1}


def test_what_a_gap_took_out_of_the_selection_is_neither_read_nor_absent() -> None:
    found = plan_gap_recovery([], SelectedStructures(LATEST, [A1, A2]), held=[A1, A2], sent={A1: A1})

    assert (found.read, found.absent) == ({A2: A2}, {})


def test_what_a_transaction_brings_to_further_topics_is_read_though_it_did_not_change() -> None:
    log = [change(4, deleted=[A2])]
    meaning = SelectedStructures((), [A1, A2])
    asked = []

    def moved(before: Sequence[str], after: Sequence[str]) -> Sequence[str]:
        asked.append((list(before), list(after)))
        return [A1]

    found = steps(log, meaning, held=[A1, A2], selected={A1: A1, A2: A2}, moved=moved)

    assert required(found) == [(4, [A1], [A2])]
    assert asked == [([A1, A2], [A1])]


URNS = [urn(name, version) for name in ("A", "B") for version in ("1.0", "2.0", "2.1")]
ACTIONS = st.lists(st.tuples(st.sampled_from(URNS), st.booleans()), min_size=1, max_size=4)
SELECTORS = st.sampled_from(["*=*:*(~)", "*=*:*(*)", "*=*:A(2.0+)", "*=*:*(2.0)", "*=*:*(2.*)"])


def course(
    start: set[str], transactions: list[list[tuple[str, bool]]]
) -> tuple[list[RegistryTransaction], list[set[str]]]:
    """A log, and what is held after each of its transactions; what isn't there can't be deleted."""
    held, log, moments = set(start), [], []
    for number, actions in enumerate(transactions, 1):
        wanted = dict(actions)
        changed = [each for each, stays in wanted.items() if stays]
        deleted = [each for each, stays in wanted.items() if not stays and each in held]
        held = (held | set(changed)) - set(deleted)
        log.append(change(number, *changed, deleted=deleted))
        moments.append(set(held))
    return log, moments


def replayed(sent: set[str], found: Iterable[LogStep]) -> set[str]:
    for step in found:
        sent = (sent | {each.urn for each in step.read}) - set(step.delete)
    return sent


@given(st.sets(st.sampled_from(URNS)), st.lists(ACTIONS, min_size=1, max_size=6), SELECTORS)
def test_the_steps_lead_to_the_selection(
    start: set[str], transactions: list[list[tuple[str, bool]]], text: str
) -> None:
    selectors = (Selector.parse(text),)
    log, moments = course(start, transactions)
    sent = set(select_structures(selectors, sorted(start)))

    found = planned(log, held=sorted(moments[-1]), sent=sorted(sent), selectors=selectors)

    assert replayed(sent, found) == set(select_structures(selectors, sorted(moments[-1])))


@given(st.sets(st.sampled_from(URNS)), st.lists(ACTIONS, min_size=1, max_size=6), SELECTORS, st.integers(0, 6))
def test_recovery_of_a_gap_and_the_steps_after_it_lead_to_the_selection(
    start: set[str], transactions: list[list[tuple[str, bool]]], text: str, lost: int
) -> None:
    selectors = (Selector.parse(text),)
    log, moments = course(start, transactions)
    log, held = log[lost:], sorted(moments[-1])
    sent = {each: each for each in select_structures(selectors, sorted(start))}
    meaning = SelectedStructures(selectors, (*held, *changed_urns(log).values(), *sent))

    gap = plan_gap_recovery(log, meaning, held=held, sent=sent)
    found = steps(log, meaning, held=gap.held, selected=gap.selected)

    # What no row names, but for deletions, is gone.
    named = set(gap.read) | {each.urn for step in found for each in step.read}
    assert replayed((set(sent) & named) | set(gap.read), found) == set(select_structures(selectors, held))
