"""What a registry did in an interval of the past, by its log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from builders.registry import urn
from contexture.sources.sdmx.reading.steps import (
    FetchRequest,
    LogStep,
    SelectedStructures,
    plan_log_replay,
    structures_at,
)
from contexture.sources.sdmx.registry import Log, LogPeriod, RegistryTransaction

A, B, C = urn("A"), urn("B"), urn("C")
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
EVERY = (A, B, C)


def did(
    number: int, *changed: str, added: tuple[str, ...] = (), deleted: tuple[str, ...] = (), minutes: int | None = None
) -> RegistryTransaction:
    at = NOON + timedelta(minutes=number if minutes is None else minutes)
    return RegistryTransaction(number, at, "Replace", changed, deleted, added)


def test_what_was_there_then_is_what_is_there_without_what_came_and_with_what_went() -> None:
    log = [did(2, A, B, added=(A,)), did(3, deleted=(C,)), did(4, deleted=(A,))]
    assert structures_at(log, (B,)) == (B, C)


def test_what_was_deleted_and_added_again_was_there() -> None:
    log = [did(2, deleted=(A,)), did(3, A, added=(A,))]
    assert structures_at(log, (A,)) == (A,)


def test_transactions_of_the_period_that_require_nothing_are_known() -> None:
    log = Log(5, (did(2, A), did(3), did(4, deleted=(B,)), did(5, A)))
    found = plan_log_replay(log, LogPeriod(1, (2, 3, 4)), SelectedStructures([], EVERY), held=(A, C), sent={})
    assert found.steps == {
        2: LogStep(log.transactions[0], (FetchRequest(A),), ()),
        4: LogStep(log.transactions[2], (), (B,)),
    }
    assert found.known == {2, 3, 4}
    assert found.selected == {A: A, B: B, C: C}


def test_what_the_log_lacks_is_not_known() -> None:
    log = Log(3, (did(3, A),), gap_until=2)
    assert plan_log_replay(log, LogPeriod(0, (1, 2, 3)), SelectedStructures([], EVERY), held=(A,), sent={}).known == {3}


def test_of_two_transactions_at_one_moment_the_earlier_one_can_not_be_read_if_they_touch_the_same() -> None:
    log = Log(5, (did(2, A, minutes=9), did(3, B, minutes=9), did(4, deleted=(A,), minutes=9), did(5, B)))
    assert plan_log_replay(
        log, LogPeriod(1, (2, 3, 4)), SelectedStructures([], EVERY), held=(B, C), sent={}
    ).unreadable == {2}


def test_structures_go_by_the_urns_that_were_sent() -> None:
    sent = "urn:sdmx:org.sdmx.infomodel.registry.ContentConstraint=X:K(1.0)"
    name = "urn:sdmx:org.sdmx.infomodel.registry.DataConstraint=X:K(1.0)"
    log = Log(2, (did(2, deleted=(name,)),))
    found = plan_log_replay(log, LogPeriod(1, (2,)), SelectedStructures([], (name,)), held=(), sent={name: sent})
    assert found.steps[2].delete == (sent,)
