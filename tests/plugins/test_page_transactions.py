"""The page of transactions and its filters: each finds what it says, none is lost on the way, bad ones are refused."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

pytestmark = pytest.mark.airflow

pytest.importorskip("airflow.sdk")

from builders.outboxes import NOON  # noqa: E402
from builders.page_browser import Browser  # noqa: E402
from builders.page_installation import FILE, page_installation  # noqa: E402
from contexture.monitoring import RunTables, TransactionRow, TransactionStatus  # noqa: E402

ATTACK = '"><script>alert(1)</script>'
PAGE, API = "publications/vehicles/transactions", "api/publications/vehicles/transactions"
HERE = "/contexture/publications/vehicles/transactions"
OUTBOXES = ("a1" * 32, "b2" * 32)


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Browser:
    """A publication with 120 transactions of a registry, one in a minute up to noon; the last but one was refused."""
    home = page_installation(tmp_path, monkeypatch, {"vehicles": FILE.format(name="vehicles")})
    store = RunTables.of_home(home.root)
    assert store is not None
    for number in range(120):
        store.set_transaction(transaction(number))
    store.close()
    return Browser("vehicles")


def transaction(number: int) -> TransactionRow:
    refused = number == 118
    return TransactionRow(
        publication="vehicles",
        outbox=OUTBOXES[number // 60],
        shard=number % 2,
        number=number,
        status=TransactionStatus.BROKER_ERROR if refused else TransactionStatus.SENT,
        records=10,
        bytes=1_500,
        position=10,
        source_transaction=4_000 + number,
        message="the topic is not there" if refused else None,
        updated_at=NOON - timedelta(minutes=119 - number),
    )


def numbers(browser: Browser, **query: Any) -> list[int]:
    answer = browser.get(API, **query)
    assert answer.status_code == 200, answer.text
    return [row["number"] for row in answer.json()["rows"]]


def total(browser: Browser, **query: Any) -> int:
    return int(browser.get(API, **query).json()["paging"]["total"])


def test_each_filter_finds_what_it_says(browser: Browser) -> None:
    assert numbers(browser, source_transaction=4007) == [7]
    assert numbers(browser, status=3) == [118]
    assert (total(browser, outbox=OUTBOXES[0]), total(browser, outbox="b2b2")) == (60, 60)
    assert total(browser, shard=1) == 60
    assert numbers(browser, since="2026-03-01T11:58") == [119, 118, 117]
    assert numbers(browser, since="2026-03-01T11:58", until="2026-03-01T11:59:30") == [118, 117]
    assert numbers(browser, until="2026-03-01T10:01:01") == [0]
    assert numbers(browser, outbox="b2", shard=0, status=3, since="2026-03-01") == [118]
    assert numbers(browser, outbox="c") == []


def test_a_time_may_say_its_offset(browser: Browser) -> None:
    assert numbers(browser, since="2026-03-01T12:58:00+01:00") == [119, 118, 117]
    assert numbers(browser, since="2026-03-01T11:59:00.001Z") == [119]
    assert "2026-03-01T11:58:00" in browser.get(PAGE, since="2026-03-01T12:58:00+01:00").text


def test_fields_that_are_left_empty_ask_for_nothing(browser: Browser) -> None:
    empty = {"status": "", "since": "", "until": "", "outbox": " ", "shard": "", "source_transaction": ""}
    assert total(browser, **empty) == 120
    assert numbers(browser, **(empty | {"outbox": " a1a1 ", "source_transaction": "4007"})) == [7]


def test_scripts_get_the_filter_as_it_was_understood(browser: Browser) -> None:
    found = browser.get(API, status=1, outbox="a1", shard=1, since="2026-03-01T10:00").json()
    assert found["which"] == {
        "status": 1,
        "outbox": "a1",
        "shard": 1,
        "since": "2026-03-01T10:00:00Z",
        "until": None,
        "source_transaction": None,
    }


def test_the_form_shows_what_was_asked_and_the_other_pages_ask_it_again(browser: Browser) -> None:
    query = {"status": 1, "outbox": "b2", "since": "2026-03-01T11:01", "until": "2026-03-01T12:30:15"}
    text = browser.get(PAGE, **query).text
    for name, value in {"since": "2026-03-01T11:01:00", "until": "2026-03-01T12:30:15", "outbox": "b2"}.items():
        assert re.search(rf'<input type="[a-z-]+" name="{name}"[^>]* value="{value}">', text)
    assert '<input type="hidden" name="status" value="1">' in text
    kept = "outbox=b2&amp;since=2026-03-01T11%3A01%3A00&amp;until=2026-03-01T12%3A30%3A15"
    assert f'<a href="{HERE}?status=1&amp;{kept}&amp;page=2" rel="next">' in text
    assert f'<a href="{HERE}?status=3&amp;{kept}">3, refused by the brokers 1</a>' in text
    assert f'<a href="{HERE}?{kept}">all 60</a>' in text
    second = browser.get(PAGE, **query, page=2).text
    assert second.count('<td class="moment">') == 9


def test_a_link_of_the_page_leads_on_to_the_same_list(browser: Browser) -> None:
    text = browser.get(PAGE, shard=1, since="2026-03-01T10:00").text
    [address] = re.findall(r'<a href="/contexture/([^"]*)" rel="next">', text)
    path, _, query = unescape(address).partition("?")
    shown = browser.get(path, **dict(parse_qsl(query))).text
    assert shown.count('<td class="moment">') == 10
    assert "51 to 60 of 60" in shown


def test_an_outbox_in_the_list_leads_to_its_own_transactions(browser: Browser) -> None:
    text = browser.get(PAGE).text
    assert f'<a href="{HERE}?outbox={OUTBOXES[1]}" title="All of this outbox"><code>b2b2b2b2b2b2</code></a>' in text
    assert total(browser, outbox=OUTBOXES[1]) == 60


def test_an_empty_list_has_a_link_to_all_transactions(browser: Browser) -> None:
    text = browser.get(PAGE, outbox="c").text
    assert "No transaction matches the filters." in text
    assert f'<a href="{HERE}">Show all</a>' in text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"status": "7"}, "status: Input should be 0, 1, 2, 3 or 4"),
        ({"shard": "first"}, "shard: Input should be a valid integer"),
        ({"shard": "-1"}, "shard: Input should be greater than or equal to 0"),
        ({"shard": str(2**31)}, "shard: Input should be less than or equal to 2147483647"),
        ({"source_transaction": str(2**63)}, "source_transaction: Input should be less than or equal to"),
        ({"source_transaction": "1e400"}, "source_transaction: Input should be a valid integer"),
        ({"source_transaction": "9" * 5000}, "source_transaction: "),
        ({"outbox": "a" * 201}, "outbox: String should have at most 200 characters"),
        ({"outbox": "a\x00b"}, "outbox: an id has no such characters"),
        ({"since": "yesterday"}, "since: write a time as 2026-03-01T11:00; it is UTC unless it has another offset"),
        ({"since": "2026-13-01T00:00"}, "since: write a time as"),
        ({"until": "9999-12-31T23:59:59-12:00"}, "until: write a time as"),
        ({"since": "1772366400"}, "since: write a time as"),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "since: this is not before until"),
        ({"page": "0"}, "page: Input should be greater than or equal to 1"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_the_field_s_name(
    browser: Browser, query: dict[str, str], message: str
) -> None:
    script, page = browser.get(API, **query), browser.get(PAGE, **query)
    assert (script.status_code, page.status_code) == (422, 422)
    assert script.json()["error"].startswith(message)
    assert message in page.text.replace("&#39;", "'")


@pytest.mark.parametrize("at", ["0001-01-01", "9999-12-31T23:59:59.999999Z"])
def test_the_first_and_the_last_time_there_are_can_be_meant(browser: Browser, at: str) -> None:
    assert browser.get(API, since=at).status_code == 200
    assert browser.get(PAGE, until=at).status_code == 200


def test_an_attack_in_a_filter_stays_text(browser: Browser) -> None:
    text = browser.get(PAGE, outbox=ATTACK).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    refused = browser.get(PAGE, since=ATTACK, shard=ATTACK)
    assert refused.status_code == 422
    assert "<script>alert" not in refused.text


def test_no_user_finds_transactions_of_what_is_not_theirs(browser: Browser) -> None:
    for path in (PAGE, API):
        assert browser.get(path, user="ben", outbox="a1").status_code == 404
