"""Which topics a structure goes to: selectors with topics, whose names may be made from agency and class.

    routes = [{select: "Codelist=ECB:*(*)", topics: [ecb-codelists, "structures-{agency}"]}]

A structure goes to the topics of every route that selects it. The values of names in braces are encoded as Cygnus does,
so that topics are legal for any agency.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from contexture.errors import ConfigurationError
from contexture.records.topics import TopicNameError, check_legal, encodings
from contexture.records.topics.collisions import find_clashes, metric_name
from contexture.sources.sdmx.selectors import Selector
from contexture.sources.sdmx.urn import Urn

_BRACED = re.compile(r"\{([^{}]*)\}")
_MADE_FROM: Mapping[str, Callable[[Urn], str]] = {
    "agency": lambda urn: urn.agency,
    "class": lambda urn: urn.class_name,
}


class TopicSettings(Protocol):
    """The settings of a publication's `topics` that routing needs."""

    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def routes(self) -> Sequence[RouteSettings]: ...


class RouteSettings(Protocol):
    """The settings of one of a publication's `topics.routes`."""

    @property
    def select(self) -> str: ...
    @property
    def topics(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Routing:
    """The topics of structures. Each structure is in exactly one of `topics`, `unrouted` and `refused`.

    Attributes:
        topics: of each structure that goes somewhere, each topic once, in the order of the routes.
        unrouted: structures that no route selects.
        refused: structures with a topic that Kafka refuses, with the reason; they go nowhere.
        clashes: topics that Kafka takes for one because they differ only in `.` and `_`; it creates only the first.
    """

    topics: Mapping[str, tuple[str, ...]]
    unrouted: tuple[str, ...]
    refused: Mapping[str, TopicNameError]
    clashes: tuple[tuple[str, ...], ...]


class Router:
    """The router of the structures of one publication.

    Args:
        routes: the publication's `topics.routes`.
        encode: returns an agency or a class as a legal part of a topic's name.

    Raises:
        SelectorError: a selector can't be read.
        ConfigurationError: a topic is made from something else than agency and class.
        TopicNameError: a topic that is the same for all structures is illegal.
    """

    def __init__(
        self, routes: Sequence[RouteSettings], *, encode: Callable[[str], str] = encodings.encode_cygnus
    ) -> None:
        self._routes = [(Selector.parse(route.select), tuple(map(_checked, route.topics))) for route in routes]
        self._encode = encode

    def route(self, urns: Iterable[str], *, held: Iterable[str] | None = None) -> Routing:
        """Returns where these structures go.

        Args:
            urns: of the structures; the state has the topics of deleted ones.
            held: everything the registry holds, where `urns` is only a part of it, because only all versions show
                the latest. Structures that aren't in it are selected by no route.
        """
        urns = tuple(dict.fromkeys(urns))
        all_held = urns if held is None else tuple(held)
        routes = [(frozenset(selector.select(all_held)), topics) for selector, topics in self._routes]
        topics: dict[str, tuple[str, ...]] = {}
        refused: dict[str, TopicNameError] = {}
        for urn in urns:
            try:
                topics[urn] = self._named(urn, [name for chosen, names in routes if urn in chosen for name in names])
            except TopicNameError as error:
                refused[urn] = error
        unrouted = tuple(urn for urn in urns if topics.get(urn) == ())
        routed = {urn: names for urn, names in topics.items() if names}
        clashes = find_clashes(name for names in routed.values() for name in names)
        return Routing(routed, unrouted, refused, tuple(sorted(clashes, key=lambda names: metric_name(names[0]))))

    def _named(self, urn: str, templates: Sequence[str]) -> tuple[str, ...]:
        if not templates:
            return ()
        parsed = Urn.parse(urn)
        return tuple(dict.fromkeys(check_legal(self._filled(template, parsed)) for template in templates))

    def _filled(self, template: str, urn: Urn) -> str:
        return _BRACED.sub(lambda braced: self._encode(_MADE_FROM[braced[1]](urn)), template)


@dataclass(frozen=True, slots=True)
class _Everything:
    """The route of the topics that every structure goes to."""

    topics: tuple[str, ...]
    select: str = "*"


def router(settings: TopicSettings) -> Router:
    """Returns the router of a publication: structures go to `topics`, and to those of the routes that select them.

    Raises:
        SelectorError: a selector can't be read.
    """
    everything = (_Everything(settings.topics),) if settings.topics else ()
    return Router([*everything, *settings.routes])


def _checked(topic: str) -> str:
    for name in _BRACED.findall(topic):
        if name not in _MADE_FROM:
            raise ConfigurationError(
                f"the topic {topic!r} is made from {name!r}", next_step="use {agency} or {class}", topic=topic
            )
    check_legal(_BRACED.sub("x", topic))
    return topic
