"""Which topics may hold records of a publication, where no state says it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product, takewhile

from contexture.errors import ContextureError
from contexture.events import ContextIdentity
from contexture.kafka.consumer_group import LEDGER_PREFIX
from contexture.publications import Publication
from contexture.records.topics import TopicNamer

_ANY = r"(?!__).*"
_MADE = re.compile(r"\{[^{}]*\}")
# Any two of each differ in their first characters, so that names have in common only what the service gives them.
_PATHS, _NAMES = ("/", "/a", "/Zb"), ("a", "Zb")


def candidates(publication: Publication, names: Iterable[str]) -> list[str]:
    """Those of a cluster's topics that are named for certain, or that begin as names of the publication's service do.

    Where grouping rules or name mappings may name anything, that is every topic but Kafka's own.
    """
    pattern = re.compile(_pattern(publication))
    return sorted(name for name in names if pattern.fullmatch(name) and not name.startswith(LEDGER_PREFIX))


def _pattern(publication: Publication) -> str:
    topics = publication.topics
    if publication.source.kind == "sdmx":
        return "|".join(map(_template, [*topics.topics, *(name for route in topics.routes for name in route.topics)]))
    namer = TopicNamer(topics)
    if topics.naming == "fixed":
        return "|".join(map(re.escape, namer(ContextIdentity("", "/", "any", ""))))
    if namer.rewrites:
        return _ANY
    found = set(_samples(namer, publication.source.service))
    return re.escape(found.pop()) if len(found) == 1 else f"{re.escape(_common_beginning(found))}.*"


def _samples(namer: TopicNamer, service: str) -> Iterator[str]:
    for path, name, kind, attribute in product(_PATHS, _NAMES, _NAMES, _NAMES):
        try:
            yield namer.name(ContextIdentity(service, path, name, kind), attribute)
        except ContextureError:
            # Old releases name few paths; the others say enough.
            continue


def _template(name: str) -> str:
    return ".+".join(map(re.escape, _MADE.split(name)))


def _common_beginning(names: set[str]) -> str:
    # What the least and the greatest have in common, all between them have too.
    least, greatest = min(names, default=""), max(names, default="")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(least, greatest, strict=False))
    return "".join(character for character, _ in same)
