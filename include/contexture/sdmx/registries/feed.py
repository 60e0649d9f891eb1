"""A registry's feed of structure changes (RSS): which URNs each transaction added, modified and deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from lxml import etree

from contexture.sdmx.registries.errors import IncompleteReplyError
from contexture.sdmx.urns import Urn

_NUMBER = re.compile(r"(?<!\d)\d{1,18}(?!\d)", re.ASCII)
_NUMBER_OF_TRANSACTION = re.compile(r"\btransaction\b\D{0,20}?(?<!\d)(\d{1,18})(?!\d)", re.ASCII | re.IGNORECASE)
_LISTS = ("added", "modified", "deleted")


@dataclass(frozen=True, slots=True)
class Told:
    """URNs of the maintainable artefacts that one transaction changed (added or modified) and deleted.

    `added`: those among the changed that were not there before it.
    """

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def told(body: bytes) -> Mapping[int, Told]:
    """What a feed contains, by the id of the transaction.

    The items of one transaction are taken together. A transaction of which an item cannot be read is left out as a
    whole, as if the feed did not contain it; so is an item whose transaction is not known.

    Raises:
        IncompleteReplyError: it is no whole feed.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _no_feed() from error
    if root.getroottree().docinfo.internalDTD is not None or _local(root) not in {"rss", "feed", "RDF"}:
        raise _no_feed()
    found: dict[int, Told] = {}
    unreadable: set[int] = set()
    for item in root.iter():
        if _local(item) not in {"item", "entry"}:
            continue
        texts = [(_local(child).lower(), "".join(child.itertext())) for child in item]
        number = _number(" ".join(text for name, text in texts if name == "title"))
        if number is None:
            continue
        changes = _changes(texts)
        if changes is None:
            unreadable.add(number)
        else:
            found[number] = _together(found.get(number, Told()), changes)
    return {number: each for number, each in found.items() if number not in unreadable}


def _number(title: str) -> int | None:
    """The transaction that a title names: the number after that word, or the only one that there is.

    >>> _number("Transaction 13 - 2026"), _number("Structures 13"), _number("Structures 13 - 2026")
    (13, 13, None)
    """
    named = _NUMBER_OF_TRANSACTION.search(title)
    numbers = [named[1]] if named else _NUMBER.findall(title)
    return int(numbers[0]) if len(numbers) == 1 else None


def _changes(texts: Sequence[tuple[str, str]]) -> Told | None:
    """What the lists of an item contain; None where it has none, or one cannot be read."""
    lists = {ending: [text for name, text in texts if name.endswith(ending)] for ending in _LISTS}
    if not any(lists.values()):
        return None
    try:
        added, modified, deleted = (_urns(";".join(lists[ending])) for ending in _LISTS)
    except ValueError:
        return None
    return Told(_each_once(added, modified), deleted, added)


def _together(one: Told, other: Told) -> Told:
    return Told(
        _each_once(one.changed, other.changed),
        _each_once(one.deleted, other.deleted),
        _each_once(one.added, other.added),
    )


def _each_once(*lists: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain(*lists)))


def _urns(text: str) -> tuple[str, ...]:
    """The artefacts in a list; items are told by the artefact that holds them."""
    written = (each.strip() for each in text.split(";"))
    return tuple(dict.fromkeys(str(Urn.parse(each).maintainable()) for each in written if each))


def _local(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _no_feed() -> IncompleteReplyError:
    return IncompleteReplyError(
        "the structure registry's answer is no feed of changes",
        next_step="look at what stands between it and us, and whether rss.xml is switched on; the run is retried",
    )
