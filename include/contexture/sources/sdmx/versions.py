"""Versions of structures: which is later, and which a pattern such as `2.3+.1` represents.

Versions and their precedence follow the technical notes of SDMX 3.0 (annex on semantic versioning), those of one or two
numbers the rules before it; patterns follow the version queries of the SDMX REST API 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, total_ordering

_OPERATORS = frozenset("+~*")
_WRITTEN = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?")
_EXACT = re.compile(r"[0-9A-Za-z._-]+")
_COMPONENT = re.compile(r"([0-9]{1,18})?([+~*])?")
_SEMANTIC = 3
_REMEMBERED = 1 << 14


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A version that has an order: 1.9 < 1.10 < 2.0 < 2.0.0-draft < 2.0.0.

    Attributes:
        numbers: one or two of an older version, three of a semantic one; SDMX 2.1 allows more.
        extension: what follows the hyphen of a semantic version that isn't stable.
    """

    numbers: tuple[int, ...]
    extension: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Version:
        """Parses a version; 1.3 and 1.03 are the same.

        Raises:
            ValueError: it is not made of numbers, so nothing shows whether it is later than another.
        """
        found = _WRITTEN.fullmatch(text)
        numbers = tuple(map(int, found[1].split("."))) if found else ()
        extension = tuple(found[2].split(".")) if found and found[2] else ()
        if not numbers or (extension and len(numbers) != _SEMANTIC):
            raise ValueError(f"{text!r} is not a version such as 1.0, 2.3.1 or 2.3.1-draft")
        return cls(numbers, extension)

    @property
    def is_stable(self) -> bool:
        """Whether it is a semantic version that cannot change any more."""
        return len(self.numbers) == _SEMANTIC and not self.extension

    def __lt__(self, other: Version) -> bool:
        return self._rank() < other._rank()

    def _rank(self) -> tuple[object, ...]:
        significant = list(self.numbers)
        while significant and not significant[-1]:
            significant.pop()
        return (
            tuple(significant),
            len(self.numbers),
            not self.extension,
            tuple(map(_identifier_rank, self.extension)),
            self.extension,
        )


def _identifier_rank(identifier: str) -> tuple[object, ...]:
    """Ranks numbers by their value and before words, as semantic versioning does."""
    if not identifier.isdigit():
        return (1, 0, identifier)
    digits = identifier.lstrip("0")
    return (0, len(digits), digits)


def version_key(text: str) -> tuple[object, ...]:
    """Returns a key that sorts versions from the earliest to the latest; those without an order first, by text."""
    version = _readable(text)
    return (0, text) if version is None else (1, version, text)


@lru_cache(_REMEMBERED)
def _readable(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class VersionPattern:
    """Versions that a selector or a reference represents.

    Attributes:
        text: as written.
        operator: `*` all, `~` the latest, `+` the latest stable one; empty: this very version.
        least: the numbers that a version must not be below.
        fixed: how many of these it must have as they are.
        lengths: how many numbers a version may have; empty: any.
    """

    text: str
    operator: str = ""
    least: tuple[int, ...] = ()
    fixed: int = 0
    lengths: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> VersionPattern:
        """Parses a pattern.

        `1.0` is this version. `*`, `~` and `+` are alone or behind one number, which with those after it is the least:
        `2.3+.1` is the latest stable version from 2.3.1 up to, and without, 3.0.0; `2.*` is every 2.y. `1.0+`, which
        the standard does not have, is the latest 1.y or stable 1.y.z.

        Raises:
            ValueError: it is no such pattern; the message shows one.
        """
        if not _OPERATORS.intersection(text):
            if not _EXACT.fullmatch(text):
                raise ValueError(f"{text!r} is not a version: write one such as 1.0 or 2.3.1, or *, ~, +, 2.3+.1")
            return cls(text)
        if text in _OPERATORS:
            return cls(text, text, (1, 0, 0), 0, frozenset((3,))) if text == "+" else cls(text, text)
        return cls._of_components(text)

    @classmethod
    def _of_components(cls, text: str) -> VersionPattern:
        components, place = _components(text)
        numbers = tuple(int(number or 0) for number, _ in components)
        operator = components[place][1]
        is_mere = components[place][0] is None
        if is_mere and any(numbers[place:]):
            raise ValueError(
                f"{text!r} has a number after a mere {operator}: write 0{operator}, or only zeros after it"
            )
        if is_mere and operator == "+" and place == 0:
            # A version that begins with 0 is public before it is stable; only a written 0 selects it.
            numbers = (1, *numbers[1:])
        lengths = {2, 3} if operator == "+" and len(numbers) < _SEMANTIC else {len(numbers)}
        return cls(text, operator, numbers, place, frozenset(lengths))

    @property
    def is_latest(self) -> bool:
        """Whether it represents one version among those that it covers."""
        return self.operator in {"+", "~"}

    def covers(self, text: str) -> bool:
        """Whether this version is among those that the pattern covers, whether it is the latest of them or not."""
        version = _readable(text)
        if not self.operator:
            return text == self.text or (version is not None and version == _readable(self.text))
        if not self.lengths:
            return True
        if version is None or (self.operator == "+" and version.extension):
            return False
        numbers = version.numbers
        is_in_range = numbers[: self.fixed] == self.least[: self.fixed] and numbers >= self.least
        return is_in_range and len(numbers) in self.lengths

    def select(self, versions: Iterable[str]) -> tuple[str, ...]:
        """Returns the versions of one artefact that the pattern represents, in their order."""
        covered = tuple(version for version in versions if self.covers(version))
        return (max(covered, key=version_key),) if covered and self.is_latest else covered


def _components(text: str) -> tuple[list[tuple[str | None, str]], int]:
    """Returns numbers and operators of a pattern, and the place of the one operator."""
    found = [_COMPONENT.fullmatch(component) for component in text.split(".")]
    components = [(each[1], each[2] or "") for each in found if each and each[0]]
    marked = [place for place, (_, operator) in enumerate(components) if operator]
    if len(components) < len(found) or len(found) not in {2, _SEMANTIC} or len(marked) != 1:
        raise ValueError(
            f"{text!r} is not a version: write two or three numbers, one of them with + ~ or *, as in 2.3+.1"
        )
    return components, marked[0]
