"""What a log contains, and from where on it does not: reference, 2.2."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from builders.registries import START, summaries
from builders.registry import urn
from contexture.sources.http.errors import IncompleteReplyError
from contexture.sources.sdmx.registry import LogPeriod, LogResetError
from contexture.sources.sdmx.registry.log import FeedEntry, LogRow, join_log, newest_id, period, rows_in, urns_in
from contexture.sources.sdmx.registry.transport import DownloadedFile

LATER = START + timedelta(hours=1)
FETCHED = DownloadedFile(200, httpx.Headers({"content-type": "application/json"}), 1, START, START)
A = FeedEntry((urn("CL_A"),))


def rows(*ids: int, type_: str = "Structure Submission") -> list[LogRow]:
    return [LogRow(each, START, "Replace", type_) for each in ids]


def log_of(
    rows_: Sequence[LogRow], feed: dict[int, FeedEntry], after: int, *, now: datetime = LATER, is_whole: bool = True
):
    return join_log(rows_, feed, after, now=now, is_whole=is_whole)


def test_new_transactions_are_in_the_order_of_ids():
    log = log_of(rows(7, 6, 5, 4), {5: A, 6: FeedEntry((), (urn(),)), 7: A, 4: A}, after=5)
    assert summaries(log.transactions) == [(6, "Replace", [], [urn()]), (7, "Replace", [urn("CL_A")], [])]
    assert (log.newest, log.gap_until) == (7, None)


def test_up_to_the_last_one_that_the_feed_does_not_cover_it_is_a_gap():
    """An outage of more than 24 hours."""
    log = log_of(rows(9, 8, 7, 6, 5), {9: A, 8: A, 6: A}, after=5)
    assert ([each.id for each in log.transactions], log.gap_until) == ([8, 9], 7)


def test_what_the_feed_may_not_contain_yet_is_left_to_the_next_request():
    log = log_of(rows(7, 6, 5), {6: A}, after=5, now=START + timedelta(seconds=30))
    assert ([each.id for each in log.transactions], log.newest, log.gap_until) == ([6], 7, None)
    assert log_of(rows(7, 6, 5), {6: A}, after=5).gap_until == 7


def test_transactions_of_registrations_touch_no_structure():
    log = log_of([*rows(6), *rows(7, type_="Registration Submission")], {6: A}, after=5)
    assert summaries(log.transactions) == [(6, "Replace", [urn("CL_A")], []), (7, "Replace", [], [])]
    assert log.gap_until is None


def test_a_search_that_does_not_reach_back_leaves_a_gap():
    log = log_of(rows(9, 8), {9: A, 8: A}, after=5, is_whole=False)
    assert ([each.id for each in log.transactions], log.gap_until) == ([8, 9], 7)
    assert log_of(rows(7, 6), {7: A, 6: A}, after=5, is_whole=False).gap_until is None


def test_a_log_that_ends_before_what_was_read_is_another_log():
    with pytest.raises(LogResetError, match="ends with transaction 3, and 500 was read"):
        newest_id(rows(1, 2, 3), 500, "http://registry")


def test_an_empty_log_that_had_something_is_not_believed():
    with pytest.raises(IncompleteReplyError):
        newest_id([], 5, "http://registry")
    assert newest_id([], 0, "http://registry") == 0
    assert newest_id([], None, "http://registry") == 0


def test_rows_are_read_whatever_the_case_of_their_names_and_each_id_once():
    body = (
        b'[{"Date": 1793534400000, "Id": 4, "Action": "Append", "Type": "Structure"},'
        b'{"date": "1793534400000", "id": "4"}, {"Date": 1793534400123, "Id": 5}]'
    )
    first, second = rows_in(body, FETCHED)
    assert (first.id, second.id) == (4, 5)
    assert second.at == datetime(2026, 11, 1, 12, 0, 0, 123000, tzinfo=UTC)


@pytest.mark.parametrize(
    "body", [b"", b"<html/>", b'{"error": 1}', b'[{"Id": 4}]', b'[{"Id": "x", "Date": 1}]', b"[1]"]
)
def test_an_answer_that_is_no_log_is_incomplete(body: bytes):
    with pytest.raises(IncompleteReplyError):
        rows_in(body, FETCHED)


def test_urns_come_as_texts_or_in_rows():
    body = f'["{urn()}", {{"Urn": "{urn("CL_B")}"}}, "{urn()}"]'.encode()
    assert urns_in(body, FETCHED) == (urn(), urn("CL_B"))


def at(number: int, minutes: int, type_: str = "Structure Submission") -> LogRow:
    return LogRow(number, START + timedelta(minutes=minutes), "Replace", type_)


def test_a_period_has_the_transactions_of_its_time_its_end_excluded():
    found = [at(8, 20), at(7, 15), at(6, 10), at(5, 10), at(4, 5)]
    assert period(found, START + timedelta(minutes=10), START + timedelta(minutes=20)) == LogPeriod(4, (5, 6, 7), True)


def test_a_period_leaves_registrations_out():
    found = [at(6, 11, "Registration"), at(5, 10), at(4, 0)]
    assert period(found, START + timedelta(minutes=10), LATER) == LogPeriod(4, (5,), True)


def test_a_period_before_the_first_transaction_is_whole():
    assert period([at(2, 20), at(1, 10)], START, LATER) == LogPeriod(0, (1, 2), True)
    assert period([], START, LATER) == LogPeriod(0, (), True)


def test_a_period_that_the_search_does_not_reach_back_to_is_not_whole():
    assert period([at(9, 20), at(8, 10)], START, LATER) == LogPeriod(7, (8, 9), False)
