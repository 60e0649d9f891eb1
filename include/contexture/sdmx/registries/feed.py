"""A registry's feed of structure changes (RSS): which URNs each transaction added, modified and deleted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

from contexture.sdmx.registries.errors import IncompleteReplyError
from contexture.sdmx.urns import Urn

_NUMBER = re.compile(r"(?<!\d)\d{1,18}(?!\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Told:
    """URNs of the maintainable artefacts that one transaction changed (added or modified) and deleted.

    `added`: those among the changed that were not there before it.
    """

    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def told(body: bytes) -> Mapping[int, Told]:
    """What a feed tells, by the id of the transaction; an item that can't be read is left out, as if it weren't there.

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
    read = (_item(item) for item in root.iter() if _local(item) in {"item", "entry"})
    return dict(each for each in read if each is not None)


def _item(item: etree._Element) -> tuple[int, Told] | None:
    texts = {_local(child).lower(): "".join(child.itertext()) for child in item}
    number = _NUMBER.findall(texts.get("title", ""))
    lists = {
        ending: [text for name, text in texts.items() if name.endswith(ending)]
        for ending in ("added", "modified", "deleted")
    }
    if not number or not any(lists.values()):
        return None
    try:
        named = {ending: _urns(";".join(written)) for ending, written in lists.items()}
    except ValueError:
        return None
    changed = tuple(dict.fromkeys((*named["added"], *named["modified"])))
    return int(number[-1]), Told(changed, named["deleted"], named["added"])


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
