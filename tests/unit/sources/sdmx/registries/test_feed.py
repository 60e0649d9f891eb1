"""The feed of structure changes; its names are documented, their namespaces are not."""

from __future__ import annotations

import pytest

from builders.registry import urn
from contexture.sources.http.errors import IncompleteReplyError
from contexture.sources.sdmx.registry.log import FeedEntry, parse_feed

ITEM = (
    "<item><title>Transaction 12: Structures</title><{p}transactionsAdded>{added}</{p}transactionsAdded>"
    "<{p}transactionsModified>{modified}</{p}transactionsModified>"
    "<{p}transactionsDeleted>{deleted}</{p}transactionsDeleted></item>"
)


def feed(added: str = "", modified: str = "", deleted: str = "", prefix: str = "") -> bytes:
    item = ITEM.format(p=prefix, added=added, modified=modified, deleted=deleted)
    return f'<rss xmlns:r="urn:of-another"><channel>{item}</channel></rss>'.encode()


@pytest.mark.parametrize("prefix", ["", "r:"])
def test_lists_are_read_in_any_namespace(prefix: str):
    body = feed(f"{urn('CL_A')};{urn('CL_B')}", f" {urn('CL_C')} ;", urn("CL_D"), prefix)
    added = (urn("CL_A"), urn("CL_B"))
    assert parse_feed(body) == {12: FeedEntry((*added, urn("CL_C")), (urn("CL_D"),), added)}


def test_an_item_counts_as_the_artefact_that_holds_it():
    code = "urn:sdmx:org.sdmx.infomodel.codelist.Code=X:CL_A(1.0).M"
    assert parse_feed(feed(modified=f"{code};{urn('CL_A')}")) == {12: FeedEntry((urn("CL_A"),), ())}


@pytest.mark.parametrize(
    "body",
    [
        feed(added="what is this"),
        b"<rss><channel><item><title>no number</title><a:added xmlns:a='a'/></item></channel></rss>",
        b"<rss><channel><item><title>Transaction 3</title></item></channel></rss>",
        b"<rss><channel/></rss>",
    ],
)
def test_an_unreadable_item_counts_as_unknown(body: bytes):
    assert parse_feed(body) == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        feed()[:-10],
        b"<html><body/></html>",
        b'<!DOCTYPE rss [<!ENTITY a "b">]><rss><channel><item><title>1</title></item></channel></rss>',
    ],
)
def test_what_is_no_whole_feed_is_incomplete(body: bytes):
    with pytest.raises(IncompleteReplyError):
        parse_feed(body)


def items(*titled: tuple[str, str]) -> bytes:
    written = "".join(f"<item><title>{title}</title>{lists}</item>" for title, lists in titled)
    return f"<rss><channel>{written}</channel></rss>".encode()


def test_the_items_of_one_transaction_are_taken_together():
    body = items(
        ("Transaction 13", f"<added>{urn('CL_A')}</added><deleted>{urn('CL_B')}</deleted>"),
        ("Transaction 13", f"<modified>{urn('CL_C')}</modified><deleted>{urn('CL_D')}</deleted>"),
    )
    assert parse_feed(body) == {13: FeedEntry((urn("CL_A"), urn("CL_C")), (urn("CL_B"), urn("CL_D")), (urn("CL_A"),))}


def test_two_lists_of_one_name_in_an_item_are_taken_together():
    body = items(("Transaction 13", f"<added>{urn('CL_A')}</added><added>{urn('CL_B')}</added>"))
    assert parse_feed(body)[13].added == (urn("CL_A"), urn("CL_B"))


@pytest.mark.parametrize("broken", ["<added>what is this</added>", ""])
def test_a_transaction_with_an_unreadable_item_counts_as_unknown(broken: str):
    whole = f"<added>{urn('CL_A')}</added>"
    for order in (whole, broken), (broken, whole):
        assert parse_feed(items(*(("Transaction 13", lists) for lists in order))) == {}


@pytest.mark.parametrize(
    ("title", "numbers"),
    [
        ("Transaction 13 - 2026", [13]),
        ("2026-11-23: transaction 13", [13]),
        ("Transaction #13 of 2026-11-23", [13]),
        ("Structures 13", [13]),
        ("Structures 13 - 2026", []),
    ],
)
def test_a_title_names_its_transaction_and_no_year(title: str, numbers: list[int]):
    assert list(parse_feed(items((title, f"<added>{urn('CL_A')}</added>")))) == numbers
