"""Replacements as Java's `replaceAll` writes them: `$1`, `${name}`, and a backslash before what stands for itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from contexture.errors import ConfigurationError

_TOKEN = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$([0-9]+)|([^\\$]+)", re.DOTALL)
_MOST_DIGITS = 9  # no expression has as many groups


@dataclass(frozen=True, slots=True)
class Replacement:
    """Text and groups, in order; a number or a name that isn't text is a group."""

    parts: tuple[tuple[str, str | int], ...]

    def expand(self, match: re.Match[str]) -> str:
        """The text that stands for a match; a group that took no part is empty."""
        return "".join(text + (match[group] or "" if group != "" else "") for text, group in self.parts)

    def everywhere(self, pattern: re.Pattern[str], text: str) -> str:
        """The text with every match replaced, one after the other, as Java's `replaceAll` does.

        Python would take a match of nothing and a longer one at the same place; Java goes on after the first.
        """
        out, done, at = list[str](), 0, 0
        while at <= len(text) and (match := pattern.search(text, at)) is not None:
            out += (text[done : match.start()], self.expand(match))
            done = match.end()
            at = done + (match.start() == done)
        return "".join((*out, text[done:]))


def replacement(text: str, pattern: re.Pattern[str]) -> Replacement:
    r"""The replacement of a text for matches of a pattern.

    Raises:
        ConfigurationError: a `$` or `\` stands at the end, or names no group.
    """
    parts, position = list[tuple[str, str | int]](), 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise _wrong(text, position, f"{text[position]!r} begins nothing")
        literal, name, digits, plain = token.groups()
        position = token.end()
        if name is not None or digits is not None:
            group, unused = _group(text, token, pattern)
            parts.append(("", group))
            position -= unused
        else:
            parts.append((literal if literal is not None else plain, ""))
    return Replacement(tuple(parts))


def _group(text: str, token: re.Match[str], pattern: re.Pattern[str]) -> tuple[str | int, int]:
    """The group a token names, and how many of its digits belong to the text after it."""
    name, digits = token[2], token[3] or ""
    if name is not None:
        if name not in pattern.groupindex:
            raise _wrong(text, token.start(), f"there is no group {name!r}")
        return name, 0
    used = digits[:_MOST_DIGITS]
    while len(used) > 1 and int(used) > pattern.groups:
        used = used[:-1]
    if int(used) > pattern.groups:
        raise _wrong(text, token.start(), f"there is no group {used}")
    return int(used), len(digits) - len(used)


def _wrong(text: str, position: int, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the replacement {text!r}: {why} (position {position + 1})",
        next_step=r"write \$ for a dollar sign, and $1 for the first group of the pattern",
    )
