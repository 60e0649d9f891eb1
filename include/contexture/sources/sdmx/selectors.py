"""Selectors of structures, such as `Codelist=ECB:*(*)`: URNs with wildcards, as the registry specification has them.

    Codelist,ValueList=ECB,ECB.*:*(2.3+.1)

Each part is `*` or a list with commas. `ECB.*` are the agencies below ECB, without ECB itself; `*` alone is everything.
Kinds are written as in URNs, in any case; one of another model than SDMX's own needs the whole beginning of its URN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from contexture.errors import ConfigurationError
from contexture.sources.sdmx.urn import CLASSES, HOLDERS, PACKAGES, Urn
from contexture.sources.sdmx.versions import VersionPattern

if TYPE_CHECKING:
    from contexture.publications import SdmxPublication

Read = TypeVar("Read")

_EVERYTHING = "*=*:*(*)"
_PREFIX = "urn:sdmx:"
_MODEL = "org.sdmx.infomodel"
_REGISTRY_KINDS = ("PublicationTable", "ReportingTemplate", "ValidationScheme")
"""Kinds that the Fusion registries have beside those of the model."""
_SPELLINGS = {kind.lower(): kind for kind in (*PACKAGES, *_REGISTRY_KINDS)}
_ITEMS = {item.lower(): holder for item, holder in HOLDERS.items()}
_OTHER_MODEL = re.compile(r"[A-Za-z]+(\.[A-Za-z]+)+")
_AGENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*(\.\*)?")
_ID = re.compile(r"[A-Za-z0-9_@$-]+")
_ANY = "*"
_PARTS = (
    ("=", "the kind", "write the kind and =, as in Codelist=ECB:*(*)"),
    (":", "the agency", "write the agency and a colon after the =, as in Codelist=ECB:*(*)"),
    ("(", "the id", "end with the version in brackets, (*) for all or (~) for the latest"),
    (")", "the version", "close the bracket behind the version"),
)


class SelectorError(ConfigurationError):
    """This text selects nothing, because it cannot be parsed; the context has the `selector` and the `character`."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a selector: a list with commas, and where it begins and ends."""

    selector: str
    start: int
    end: int

    def read(self, check: Callable[[str], Read]) -> Iterator[Read]:
        """Yields what its items represent; nothing where it is `*`."""
        written = self.selector[self.start : self.end]
        if written.strip() == _ANY:
            return
        start = self.start
        for item in written.split(","):
            try:
                yield check(item.strip())
            except ValueError as error:
                at = start + len(item) - len(item.lstrip())
                raise _unreadable(self.selector, at, str(error)) from None
            start += len(item) + 1


def _places(selector: str) -> Iterator[tuple[str, int, int]]:
    start = 0
    for mark, what, hint in _PARTS:
        end = selector.find(mark, start)
        if end < 0:
            raise _unreadable(selector, len(selector), f"{what} is not followed by {mark!r}: {hint}")
        yield selector, start, end
        start = end + 1
    if selector[start:].strip():
        raise _unreadable(selector, start, "nothing follows the version: leave it out; items cannot be selected")


def _unreadable(selector: str, at: int, reason: str) -> SelectorError:
    # What was written may hold a colon; hints never do.
    what, _, hint = reason.rpartition(": ")
    return SelectorError(
        f"the selector {selector!r} cannot be read at character {at + 1}: {what}",
        next_step=hint,
        selector=selector,
        character=at + 1,
    )


def _kind(text: str) -> str:
    name = text
    if text.startswith(_PREFIX):
        qualified = text.removeprefix(_PREFIX)
        model, _, name = qualified.rpartition(".")
        if not model.startswith(f"{_MODEL}."):
            return _of_other_model(qualified)
        if name in PACKAGES and model != f"{_MODEL}.{PACKAGES[name]}":
            raise ValueError(
                f"{name} is in another package: write {name}, or {_PREFIX}{_MODEL}.{PACKAGES[name]}.{name}"
            )
    kind = _SPELLINGS.get(name.lower())
    if kind is None:
        raise ValueError(_unknown(name))
    if kind in CLASSES:
        raise ValueError(f"URNs of {kind} have the class {CLASSES[kind]}: write {CLASSES[kind]}")
    return kind


def _of_other_model(qualified: str) -> str:
    if not _OTHER_MODEL.fullmatch(qualified):
        raise ValueError(f"{_PREFIX}{qualified} is not a beginning of a URN: write {_PREFIX}model.package.Class")
    return qualified


def _unknown(name: str) -> str:
    if name == _ANY:
        return "the list holds *: write * alone, or leave it out"
    if name.lower() in _ITEMS:
        return f"{name} is an item: select the {_ITEMS[name.lower()]} that holds it"
    near = get_close_matches(name.lower(), _SPELLINGS, n=1)
    hint = f"did you mean {_SPELLINGS[near[0]]}" if near else "write a class as in URNs, such as Codelist, or *"
    return f"no kind is called {name!r}: {hint}"


def _agency(text: str) -> str:
    if not _AGENCY.fullmatch(text):
        raise ValueError(
            f"{text!r} is not an agency: write one such as ECB or ECB.STA, ECB.* for those below, or * alone"
        )
    return text


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValueError(f"{text!r} is not an id: write a whole one, several with commas, or * alone")
    return text


@dataclass(frozen=True, slots=True)
class Selector:
    """A selection of structures.

    Attributes:
        text: as written.
        kinds: classes as in URNs, or with model and package for those of other models; empty: all.
        agencies: empty: all; `ECB.*` are those below ECB.
        ids: empty: all.
        versions: of each artefact, what one of these represents; empty: all.
    """

    text: str
    kinds: frozenset[str]
    agencies: frozenset[str]
    ids: frozenset[str]
    versions: tuple[VersionPattern, ...]

    @classmethod
    def parse(cls, text: str) -> Selector:
        """Parses a selector.

        Raises:
            SelectorError: it cannot be parsed; the message has the place and what to write.
        """
        written = _EVERYTHING if text.strip() == _ANY else text
        kinds, agencies, ids, versions = (_Part(*place) for place in _places(written))
        return cls(
            text,
            frozenset(kinds.read(_kind)),
            frozenset(agencies.read(_agency)),
            frozenset(ids.read(_id)),
            tuple(versions.read(VersionPattern.parse)),
        )

    def matches(self, urn: str | Urn) -> bool:
        """Whether it covers this structure; an item counts as the artefact that holds it.

        Of the versions that `~` and `+` cover only one is selected: `select_structures` shows which.
        """
        try:
            named = (Urn.parse(urn) if isinstance(urn, str) else urn).maintainable()
        except ValueError:
            return False
        return (
            self._is_of_kind(named)
            and (not self.agencies or named.agency in self.agencies or self._is_below(named.agency))
            and (not self.ids or named.id in self.ids)
            and (not self.versions or any(pattern.covers(named.version) for pattern in self.versions))
        )

    def select(self, urns: Iterable[str]) -> tuple[str, ...]:
        """Returns the selected structures, in their order.

        Args:
            urns: of everything the registry holds, because only all versions show which is the latest.
        """
        matching = [(urn, Urn.parse(urn).maintainable()) for urn in urns if self.matches(urn)]
        if not any(pattern.is_latest for pattern in self.versions):
            return tuple(urn for urn, _ in matching)
        held: dict[Urn, list[str]] = {}
        for _, named in matching:
            held.setdefault(_without_version(named), []).append(named.version)
        chosen = {artefact: self._chosen(versions) for artefact, versions in held.items()}
        return tuple(urn for urn, named in matching if named.version in chosen[_without_version(named)])

    def _chosen(self, versions: Sequence[str]) -> set[str]:
        return {version for pattern in self.versions for version in pattern.select(versions)}

    def _is_of_kind(self, urn: Urn) -> bool:
        whole = f"{urn.model}.{urn.package}.{urn.class_name}"
        return not self.kinds or urn.class_name in self.kinds or whole in self.kinds

    def _is_below(self, agency: str) -> bool:
        parts = agency.split(".")
        return any(f"{'.'.join(parts[:length])}.*" in self.agencies for length in range(1, len(parts)))


def select_structures(selectors: Sequence[Selector], urns: Sequence[str]) -> tuple[str, ...]:
    """Returns the structures that any of the selectors selects, in their order; without selectors all of them."""
    if not selectors:
        return tuple(urns)
    chosen = {urn for selector in selectors for urn in selector.select(urns)}
    return tuple(urn for urn in urns if urn in chosen)


def _without_version(urn: Urn) -> Urn:
    return replace(urn, version="")


Place = tuple[str | int, ...]
"""The place of a selector in the file, as a path from its top."""


def unreadable(publication: SdmxPublication) -> Iterator[tuple[Place, SelectorError]]:
    """Yields the selectors that cannot be parsed, each with its place and the reason."""
    for place, text in _written(publication):
        try:
            Selector.parse(text)
        except SelectorError as error:
            yield place, error


def _written(publication: SdmxPublication) -> Iterator[tuple[Place, str]]:
    for number, text in enumerate(publication.source.select):
        yield ("source", "select", number), text
    for number, route in enumerate(publication.topics.routes):
        yield ("topics", "routes", number, "select"), route.select
