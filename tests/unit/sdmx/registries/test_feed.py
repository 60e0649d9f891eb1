"""The feed of structure changes; its names are documented, their namespaces are not."""

from __future__ import annotations

import pytest

from builders.registry import urn
from contexture.sdmx.registries import IncompleteReplyError
from contexture.sdmx.registries.feed import Told, told

ITEM = (
    "<item><title>Transaction 12: Structures</title><{p}transactionsAdded>{added}</{p}transactionsAdded>"
    "<{p}transactionsModified>{modified}</{p}transactionsModified>"
    "<{p}transactionsDeleted>{deleted}</{p}transactionsDeleted></item>"
)


def feed(added: str = "", modified: str = "", deleted: str = "", prefix: str = "") -> bytes:
    item = ITEM.format(p=prefix, added=added, modified=modified, deleted=deleted)
    return f'<rss xmlns:r="urn:of-somebody"><channel>{item}</channel></rss>'.encode()


@pytest.mark.parametrize("prefix", ["", "r:"])
def test_lists_are_read_in_any_namespace(prefix: str):
    body = feed(f"{urn('CL_A')};{urn('CL_B')}", f" {urn('CL_C')} ;", urn("CL_D"), prefix)
    added = (urn("CL_A"), urn("CL_B"))
    assert told(body) == {12: Told((*added, urn("CL_C")), (urn("CL_D"),), added)}


def test_an_item_is_told_by_the_artefact_that_holds_it():
    code = "urn:sdmx:org.sdmx.infomodel.codelist.Code=X:CL_A(1.0).M"
    assert told(feed(modified=f"{code};{urn('CL_A')}")) == {12: Told((urn("CL_A"),), ())}


@pytest.mark.parametrize(
    "body",
    [
        feed(added="what is this"),
        b"<rss><channel><item><title>no number</title><a:added xmlns:a='a'/></item></channel></rss>",
        b"<rss><channel><item><title>Transaction 3</title></item></channel></rss>",
        b"<rss><channel/></rss>",
    ],
)
def test_an_item_that_can_not_be_read_counts_as_not_told(body: bytes):
    assert told(body) == {}


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
        told(body)
