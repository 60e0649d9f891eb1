"""Regular expressions that users write: a match that takes longer than a second is given up, and says so.

An expression such as `(a|aa)+b` takes time that doubles with each character; a name from a source decides how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import regex

from contexture.errors import ConfigurationError

LIMIT_SECONDS: Final = 1.0

Match = regex.Match[str]


@dataclass(frozen=True, slots=True)
class BoundedPattern:
    """An expression of a user, whose matches end within `LIMIT_SECONDS`.

    Attributes:
        written: the expression as the user wrote it, for messages.
    """

    written: str
    _compiled: regex.Pattern[str]

    @classmethod
    def compiled(cls, expression: str, written: str | None = None, *, ascii_only: bool = False) -> BoundedPattern:
        """Returns the pattern of an expression in Python's syntax.

        Args:
            expression: what is compiled.
            written: the user's own text, where `expression` is its translation.
            ascii_only: whether `\\d`, `\\w`, `\\s` and the ignoring of case know ASCII only.

        Raises:
            ValueError: it is no regular expression, or one too large.
        """
        try:
            pattern = regex.compile(expression, regex.VERSION0 | (regex.ASCII if ascii_only else regex.UNICODE))
        except regex.error as error:
            raise ValueError(str(error)) from None
        except (OverflowError, RecursionError, MemoryError) as error:
            raise ValueError(str(error) or "it is too large") from None
        return cls(expression if written is None else written, pattern)

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return self._compiled.groups

    @property
    def group_names(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(self._compiled.groupindex)

    def fullmatch(self, text: str) -> Match | None:
        """Returns the match of a whole text.

        Raises:
            ConfigurationError: it took too long.
        """
        try:
            return self._compiled.fullmatch(text, timeout=LIMIT_SECONDS)
        except TimeoutError:
            raise self._too_slow(text) from None

    def search(self, text: str, start: int = 0) -> Match | None:
        """Returns the first match from a position on.

        Raises:
            ConfigurationError: it took too long.
        """
        try:
            return self._compiled.search(text, start, timeout=LIMIT_SECONDS)
        except TimeoutError:
            raise self._too_slow(text) from None

    def _too_slow(self, text: str) -> ConfigurationError:
        return ConfigurationError(
            f"the regular expression {self.written!r} did not end within {LIMIT_SECONDS:g} s "
            f"on a text of {len(text)} characters",
            next_step="write it without alternatives or repetitions inside a repetition, such as (a|aa)+",
        )
