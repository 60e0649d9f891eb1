"""Reading a selector: its four parts, and where in it something can't be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from contexture.errors import ConfigurationError
from contexture.sdmx.kinds import CLASSES, HOLDERS, PACKAGES
from contexture.sdmx.versions import VersionPattern

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
    """This text selects nothing, because it can't be read; the context has the `selector` and the `character`."""


@dataclass(frozen=True, slots=True)
class SelectorParts:
    """What a selector says; a part that is `*` is empty."""

    kinds: frozenset[str]
    agencies: frozenset[str]
    ids: frozenset[str]
    versions: tuple[VersionPattern, ...]

    @classmethod
    def read(cls, selector: str) -> SelectorParts:
        """What this one says.

        Raises:
            SelectorError: it can't be read; says where, and what to write.
        """
        written = _EVERYTHING if selector.strip() == _ANY else selector
        kinds, agencies, ids, versions = (_Part(*place) for place in _places(written))
        return cls(
            frozenset(kinds.read(_kind)),
            frozenset(agencies.read(_agency)),
            frozenset(ids.read(_id)),
            tuple(versions.read(VersionPattern.parse)),
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a selector: a list with commas, and where it begins and ends."""

    selector: str
    start: int
    end: int

    def read(self, check: Callable[[str], Read]) -> Iterator[Read]:
        """What its items stand for; nothing where it is `*`."""
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
            raise _unreadable(selector, len(selector), f"{what} isn't followed by {mark!r}: {hint}")
        yield selector, start, end
        start = end + 1
    if selector[start:].strip():
        raise _unreadable(selector, start, "nothing follows the version: leave it out; items can't be selected")


def _unreadable(selector: str, at: int, reason: str) -> SelectorError:
    # What was written may hold a colon; hints never do.
    what, _, hint = reason.rpartition(": ")
    return SelectorError(
        f"the selector {selector!r} can't be read at character {at + 1}: {what}",
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
        raise ValueError(f"{_PREFIX}{qualified} is no beginning of a URN: write {_PREFIX}model.package.Class")
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
        raise ValueError(f"{text!r} is no agency: write one such as ECB or ECB.STA, ECB.* for those below, or * alone")
    return text


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValueError(f"{text!r} is no id: write a whole one, several with commas, or * alone")
    return text
