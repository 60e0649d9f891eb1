"""The log of transactions as an FMR publishes it: search, all URNs, history, and the feed of the last 24 hours."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from xml.sax.saxutils import escape

from contexture.sources.sdmx.urn import is_registration
from contexture_sandbox.http_server import Answer, json_answer
from contexture_sandbox.registry.model import Transaction
from contexture_sandbox.registry.refusals import bad_request, no_results
from contexture_sandbox.registry.registry import Call
from contexture_sandbox.registry.store import Store

DAY_MS = 86_400_000
EVENTS_AT_LEAST = 5
_FEED = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>Structure changes</title>'
    "<link>{base}/rss.xml</link><description>Transactions of the last 24 hours</description>{items}</channel></rss>"
)
_ITEM = (
    "<item><title>Transaction {id}</title><link>{link}</link><guid>{link}</guid><description>{action}</description>"
    "<content:encoded>{action}</content:encoded><pubDate>{rfc}</pubDate><dc:date>{iso}</dc:date>"
    "<transactionsAdded>{added}</transactionsAdded><transactionsModified>{modified}</transactionsModified>"
    "<transactionsDeleted>{deleted}</transactionsDeleted></item>"
)


def search(store: Store, call: Call) -> Answer:
    """Transactions as rows, newest first unless `orderDesc=false`.

    Raises:
        Refusal: 400, a filter is no number.
    """
    parameters = call.parameters
    with store.lock:
        found = [each for each in store.transactions if _passes(each, parameters)]
    if parameters.get("orderDesc", "true").lower() != "false":
        found.reverse()
    at_most = _number(parameters, "max")
    return json_answer([_row(each) for each in call.share(found if at_most is None else found[:at_most])])


def all_urns(store: Store, call: Call) -> Answer:
    """URNs of all structures that there are or ever were."""
    return json_answer(call.share(store.urns()))


def history(store: Store, call: Call) -> Answer:
    """The transactions that touched one URN (`urn`), newest first.

    The parameter and the rows are a guess, because no document describes them.

    Raises:
        Refusal: 400, no URN; 404, it was never there.
    """
    urn = call.parameters.get("urn")
    if not urn:
        raise bad_request("which urn?")
    with store.lock:
        touching = [each for each in reversed(store.transactions) if urn in each.urns]
    if not touching:
        raise no_results()
    return json_answer([{**_row(each), "Urn": urn, "Change": _change(each, urn)} for each in call.share(touching)])


def feed(store: Store, call: Call, *, registrations: bool) -> Answer:
    """The transactions of the last 24 hours, newest first; the last five if there were none.

    Args:
        store: with the log.
        call: the request.
        registrations: whether those of data registrations are among them, which no document says.
    """
    with store.lock:
        newest = [each for each in reversed(store.transactions) if registrations or not _is_of_registrations(each)]
        after = store.now_ms() - DAY_MS
    recent = [each for each in newest if each.at_ms >= after] or newest[:EVENTS_AT_LEAST]
    items = "".join(_item(each, call.base) for each in call.share(recent))
    body = _FEED.format(base=escape(call.base), items=items).encode()
    return Answer(200, body, {"content-type": "application/rss+xml"})


def submitted(store: Store, number: str) -> Answer:
    """What was submitted in a transaction.

    Raises:
        Refusal: 404, there is no such transaction.
    """
    with store.lock:
        if not number.isdecimal() or not 0 < int(number) <= len(store.transactions):
            raise no_results()
        transaction = store.transactions[int(number) - 1]
    return Answer(200, transaction.submitted, {"content-type": transaction.media_type})


def _row(transaction: Transaction) -> dict[str, object]:
    return {
        "Date": transaction.at_ms,
        "Id": transaction.id,
        "Action": transaction.action,
        "Type": "Registration Submission" if _is_of_registrations(transaction) else "Structure Submission",
    }


def _is_of_registrations(transaction: Transaction) -> bool:
    return bool(transaction.urns) and all(map(is_registration, transaction.urns))


def _change(transaction: Transaction, urn: str) -> str:
    if urn in transaction.deleted:
        return "Deleted"
    return "Added" if urn in transaction.added else "Modified"


def _passes(transaction: Transaction, parameters: Mapping[str, str]) -> bool:
    after, before = _number(parameters, "dateFrom"), _number(parameters, "dateTo")
    return (
        (after is None or transaction.at_ms >= after)
        and (before is None or transaction.at_ms <= before)
        and parameters.get("action", transaction.action).lower() == transaction.action.lower()
        and parameters.get("user", transaction.user) == transaction.user
    )


def _number(parameters: Mapping[str, str], name: str) -> int | None:
    text = parameters.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise bad_request(f"{name} is no number")
    return int(text)


def _item(transaction: Transaction, base: str) -> str:
    moment = datetime.fromtimestamp(transaction.at_ms / 1000, UTC)
    return _ITEM.format(
        id=transaction.id,
        link=escape(f"{base}/ws/registry/tx/submission/{transaction.id}"),
        action=transaction.action,
        rfc=format_datetime(moment, usegmt=True),
        iso=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        added=escape(";".join(transaction.added)),
        modified=escape(";".join(transaction.modified)),
        deleted=escape(";".join(transaction.deleted)),
    )
