"""How far a registry was read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from contexture.sources.sdmx.reading.steps import reached, settled, transaction_of
from contexture.sources.sdmx.registry import Log, RegistryTransaction

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
ELEVEN = "Sun, 01 Nov 2026 11:00:00 GMT"


@pytest.mark.parametrize(
    ("watermark", "transaction"), [("17", 17), ("0", 0), (None, None), ("", None), (ELEVEN, None), ("\u0661", None)]
)
def test_only_decimal_digits_are_a_transaction(watermark: str | None, transaction: int | None) -> None:
    assert transaction_of(watermark) == transaction


def test_a_transaction_that_the_log_does_not_contain_yet_is_not_reached() -> None:
    assert reached(Log(newest=9, transactions=(RegistryTransaction(8, NOON, "Replace"),)), 7) == 8


def test_a_gap_is_reached_at_its_end() -> None:
    assert reached(Log(newest=9, gap_until=8), 3) == 8


def test_nothing_new_reaches_no_further() -> None:
    assert reached(Log(newest=7), 7) == 7


def test_the_registry_is_asked_by_the_time_of_its_last_change() -> None:
    assert settled(ELEVEN, NOON) == ELEVEN


@pytest.mark.parametrize(
    "last_modified",
    [None, "", "yesterday", "Sun, 01 Nov 2026 11:55:01 GMT", "Sun, 01 Nov 2026 13:00:00 GMT"],
    ids=["none", "empty", "no time", "just now", "a clock that is ahead"],
)
def test_a_time_that_can_not_be_relied_on_is_not_asked_by(last_modified: str | None) -> None:
    assert settled(last_modified, NOON) is None
