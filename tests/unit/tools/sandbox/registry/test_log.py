"""The log of transactions, by the endpoints of the SDMX reference, section 2.1."""

from __future__ import annotations

import pytest
from lxml import etree

from builders.registry import START_MS, Client, codelist, codelists, urn

SEARCH = "/ws/registry/tx/searchTransactions"


@pytest.fixture
def client() -> Client:
    """A registry with an addition, a modification and a deletion, 10 seconds apart."""
    client = Client()
    client.submit(codelists(codelist("CL_A"), codelist("CL_B")), action="Append")
    client.later(10)
    client.submit(codelists(codelist("CL_A", "1.0", "A")))
    client.later(10)
    client.submit(codelists(codelist("CL_B")), action="Delete")
    return client


def test_a_row_has_date_id_action_and_type(client: Client):
    assert client.json(f"{SEARCH}?max=1") == [
        {"Date": START_MS + 20_000, "Id": 3, "Action": "Delete", "Type": "Structure Submission"}
    ]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ("", [3, 2, 1]),
        ("?orderDesc=false", [1, 2, 3]),
        ("?max=2", [3, 2]),
        ("?orderDesc=false&max=2", [1, 2]),
        (f"?dateFrom={START_MS + 10_000}", [3, 2]),
        (f"?dateTo={START_MS + 10_000}", [2, 1]),
        ("?action=Replace", [2]),
        ("?action=FullReplace", []),
        ("?user=root&orderDesc=false", [1, 2, 3]),
        ("?user=unknown", []),
    ],
)
def test_transactions_are_found(client: Client, filters: str, ids: list[int]):
    assert [row["Id"] for row in client.json(SEARCH + filters)] == ids


def test_a_filter_that_is_no_number_is_refused(client: Client):
    assert client.ask(f"{SEARCH}?dateFrom=yesterday").status == 400


def test_all_urns_holds_the_deleted_ones_too(client: Client):
    assert client.json("/ws/registry/tx/getAllUrns") == [urn("CL_A"), urn("CL_B")]


def test_history_lists_the_transactions_of_one_urn(client: Client):
    rows = client.json(f"/ws/registry/tx/history?urn={urn('CL_B')}")
    assert [(row["Id"], row["Change"]) for row in rows] == [(3, "Deleted"), (1, "Added")]
    assert client.ask("/ws/registry/tx/history").status == 400
    assert client.ask(f"/ws/registry/tx/history?urn={urn('CL_NONE')}").status == 404


def test_the_product_is_reported(client: Client):
    assert client.json("/ws/fusion/info/product") == {"Version": "12.4.2", "ReleaseDate": "2026-09-19"}


def items(client: Client) -> list[dict[str, str | None]]:
    channel = etree.fromstring(client.ask("/rss.xml").body)[0]
    return [{etree.QName(child).localname: child.text for child in item} for item in channel.findall("item")]


def test_the_feed_lists_urns_of_each_transaction(client: Client):
    deleted, modified, added = items(client)
    assert added["transactionsAdded"] == f"{urn('CL_A')};{urn('CL_B')}"
    assert modified == {
        "title": "Transaction 2",
        "link": "http://registry/ws/registry/tx/submission/2",
        "guid": "http://registry/ws/registry/tx/submission/2",
        "description": "Replace",
        "encoded": "Replace",
        "pubDate": "Sun, 01 Nov 2026 12:00:10 GMT",
        "date": "2026-11-01T12:00:10Z",
        "transactionsAdded": None,
        "transactionsModified": urn("CL_A"),
        "transactionsDeleted": None,
    }
    assert deleted["transactionsDeleted"] == urn("CL_B")


def test_the_link_of_an_item_leads_to_what_was_submitted(client: Client):
    answer = client.ask("/ws/registry/tx/submission/2")
    assert answer.body == codelists(codelist("CL_A", "1.0", "A"))
    assert client.ask("/ws/registry/tx/submission/4").status == 404


def test_the_feed_covers_24_hours(client: Client):
    client.later(86_400 - 15)
    assert [item["title"] for item in items(client)] == ["Transaction 3", "Transaction 2"]


def test_without_news_the_feed_lists_the_last_five(client: Client):
    for _ in range(4):
        client.submit(codelists(codelist("CL_A")))
    client.later(86_401)
    assert [item["title"] for item in items(client)] == [f"Transaction {number}" for number in (7, 6, 5, 4, 3)]


def test_times_of_transactions_may_tie_and_their_ids_never():
    client = Client()
    for _ in range(3):
        client.submit(codelists(codelist()))
    rows = client.json(f"{SEARCH}?orderDesc=false")
    assert [(row["Id"], row["Date"]) for row in rows] == [(1, START_MS), (2, START_MS), (3, START_MS)]


def test_the_log_can_be_empty_or_half_by_fault(client: Client):
    def number(url: str, **fault: bool) -> int:
        return client.ask(url, **fault).body.count(b'"Id"' if url == SEARCH else b"<item>")

    assert [number(SEARCH), number(SEARCH, half=True), number(SEARCH, empty=True)] == [3, 1, 0]
    assert [number("/rss.xml"), number("/rss.xml", half=True), number("/rss.xml", empty=True)] == [3, 1, 0]
    assert client.ask("/ws/registry/tx/getAllUrns", empty=True).body == b"[]"
