"""Java's regular expressions in Python's, as far as both can say the same; what isn't translated is refused by place.

Translated: named groups, `\\Q...\\E`, POSIX classes (`\\p{Alpha}`), `\\h \\v \\R`, `\\x{h} \\0n \\cX \\e \\a`, the
line ends of Java in `.` and `$`, possessive quantifiers, atomic groups, `(?i)` and `(?s)` at the beginning, `(?i:...)`.
Refused: class intersections and unions (`[a&&b]`, `[a[b]]`), Unicode classes (`\\p{L}`), other flags, `\\G \\X \\N`,
and what Java itself refuses. `\\d \\w \\s` know ASCII only, and `\\b` all letters, as in Java.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

from contexture.errors import ConfigurationError
from contexture.publications.bounded_patterns import BoundedPattern, Match

REFERENCE = re.compile(r"\\(?:k<([A-Za-z][A-Za-z0-9]*)>|([1-9][0-9]*))")

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "A-Za-z",
    "Digit": "0-9",
    "Alnum": "A-Za-z0-9",
    "Punct": r"!-/:-@\[-`{-\~",
    "Graph": r"!-\~",
    "Print": r" -\~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9A-Fa-f",
    "Space": r"\t-\r ",
}
_SETS = {
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n-\r\x85\u2028\u2029",
}
_SAME = frozenset("dDwWsS")
_ANCHORS = {
    "A": r"\A",
    "z": r"\Z",
    "Z": r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)",
    "R": r"(?:\r\n|[\n-\r\x85\u2028\u2029])",
}
_CONTROLS = {"t": 9, "n": 10, "f": 12, "r": 13, "a": 7, "e": 27}
_PROPERTY = re.compile(r"\\([pP])\{(\w+)\}")
_NUMBER = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|0([0-3][0-7]{2}|[0-7]{1,2}))")
_LARGEST = 0x10FFFF


class Escape(NamedTuple):
    """An escape in Python's words: outside of a class, in one (None: not possible there), and where it ends."""

    outside: str
    inside: str | None
    end: int


def read(pattern: str, at: int) -> Escape | None:
    """Returns the escape at a backslash; None when there is none that can be translated."""
    letter = pattern[at + 1 : at + 2]
    if not letter:
        return None
    if letter in _SAME:
        return Escape(f"\\{letter}", f"\\{letter}", at + 2)
    if letter in _ANCHORS:
        return Escape(_ANCHORS[letter], None, at + 2)
    if letter in "bB":
        is_boundary_of_clusters = pattern.startswith("{", at + 2)
        return None if is_boundary_of_clusters else Escape(_boundary(negated=letter == "B"), None, at + 2)
    if letter.lower() in _SETS:
        return _set(_SETS[letter.lower()], letter.isupper(), at + 2)
    return _property(pattern, at) if letter in "pP" else _literal(pattern, at, letter)


@cache
def _boundary(*, negated: bool) -> str:
    """Up to Java 18, under which Cygnus runs, boundaries know the letters of all languages, as `\\w` does not."""
    in_word = [point for point in range(_LARGEST + 1) if chr(point).isalnum() or chr(point) == "_"]
    # Neighbours differ from their places by the same number.
    runs = (list(run) for _, run in groupby(enumerate(in_word), lambda each: each[1] - each[0]))
    word = "".join(f"\\U{run[0][1]:08x}-\\U{run[-1][1]:08x}" for run in runs)
    after_word, after_other = ("=", "!") if negated else ("!", "=")
    return f"(?:(?<=[{word}])(?{after_word}[{word}])|(?<![{word}])(?{after_other}[{word}]))"


def _set(members: str, negated: bool, end: int) -> Escape:
    return Escape(f"[^{members}]", None, end) if negated else Escape(f"[{members}]", members, end)


def _property(pattern: str, at: int) -> Escape | None:
    found = _PROPERTY.match(pattern, at)
    if found is None or found[2] not in _POSIX:
        return None
    return _set(_POSIX[found[2]], found[1] == "P", found.end())


def _literal(pattern: str, at: int, letter: str) -> Escape | None:
    if number := _NUMBER.match(pattern, at):
        octal = number[4]
        point = int(octal, 8) if octal else int(number[1] or number[2] or number[3], 16)
        return _character(point, number.end()) if point <= _LARGEST else None
    if letter in _CONTROLS:
        return _character(_CONTROLS[letter], at + 2)
    if letter == "c" and at + 2 < len(pattern):
        return _character(ord(pattern[at + 2]) ^ 64, at + 3)
    return None if letter.isascii() and letter.isalnum() else _character(ord(letter), at + 2)


def _character(point: int, end: int) -> Escape:
    text = f"\\U{point:08x}"
    return Escape(text, text, end)


_GROUP_OPENERS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:")
_NAMED_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_FLAGS = re.compile(r"\(\?([is]{1,2})\)")
_RANGE = re.compile(r"-[^\]]", re.DOTALL)
_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")
_MOST_DIGITS = 9  # no expression has as many groups
_NEXT_STEP = "write it in another way; the how-to on moving from Cygnus lists what is understood"
_ANY = r"[^\n\r\x85\u2028\u2029]"
_END = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"


def refused(
    pattern: str, position: int, construct: str, why: str = "is not translated from Java"
) -> ConfigurationError:
    """Returns the error that shows a construct and its position (counted from 1)."""
    return ConfigurationError(
        f"the regular expression {pattern!r}: {construct} at position {position + 1} {why}",
        next_step=_NEXT_STEP,
    )


@lru_cache(1024)
def compile_java(pattern: str) -> BoundedPattern:
    """Returns the pattern that matches what Java's would.

    Raises:
        ConfigurationError: the pattern holds what can't be translated, or is wrong in Java too.
    """
    translated = _Translation(pattern).run()
    try:
        return BoundedPattern.compiled(translated, pattern, ascii_only=True)
    except ValueError as error:
        # Its position is that in the translation, which no one has seen.
        reason = str(error).partition(" at position")[0]
        raise ConfigurationError(
            f"the regular expression {pattern!r} cannot be used: {reason}", next_step=_NEXT_STEP
        ) from None


def _is_character(member: str) -> bool:
    """Whether a member of a class represents one character, so that a range can begin or end with it."""
    return len(member) == 1 or member.startswith("\\U")


class _Translation:
    """One pass over a pattern; `_at` is its position."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = 0
        self._any = _ANY
        # Of each open group: whether it looks behind, or is part of one that does.
        self._looks_behind = [False]

    def run(self) -> str:
        out = [self._leading_flags()]
        while self._at < len(self._pattern):
            out.append(self._next())
        return "".join(out)

    def _leading_flags(self) -> str:
        flags = _FLAGS.match(self._pattern)
        if flags is None:
            return ""
        self._at = flags.end()
        if "s" in flags[1]:
            self._any = r"(?s:.)"
        return "(?i)" if "i" in flags[1] else ""

    def _next(self) -> str:
        character = self._pattern[self._at]
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character == "{":
            return self._count()
        if character in "*+" and self._looks_behind[-1] and self._at:
            raise self._without_largest_length()
        if character == ")" and len(self._looks_behind) > 1:
            self._looks_behind.pop()
        self._at += 1
        return {".": self._any, "$": _END, "}": r"\}", "]": r"\]"}.get(character, character)

    def _count(self) -> str:
        count = _COUNT.match(self._pattern, self._at)
        if count is None:
            raise refused(self._pattern, self._at, "'{'", "is no count such as {2,3}")
        if self._looks_behind[-1] and count[0].endswith(",}"):
            raise self._without_largest_length()
        self._at = count.end()
        return count[0]

    def _without_largest_length(self) -> ConfigurationError:
        repetition = repr(self._pattern[self._at])
        return refused(self._pattern, self._at, repetition, "sets no largest length of a look-behind; write {1,9}")

    def _group(self) -> str:
        behind = self._pattern.startswith(("(?<=", "(?<!"), self._at)
        self._looks_behind.append(behind or self._looks_behind[-1])
        if not self._pattern.startswith("(?", self._at):
            self._at += 1
            self._groups += 1
            return "("
        if named := _NAMED_GROUP.match(self._pattern, self._at):
            self._at = named.end()
            self._groups += 1
            return f"(?P<{named[1]}>"
        for opener in _GROUP_OPENERS:
            if self._pattern.startswith(opener, self._at):
                self._at += len(opener)
                return opener
        raise refused(self._pattern, self._at, repr(self._pattern[self._at : self._at + 4]))

    def _escape(self) -> str:
        start = self._at
        if self._pattern.startswith("\\Q", start):
            return self._quotation()
        if reference := REFERENCE.match(self._pattern, start):
            return self._back_reference(reference)
        token = read(self._pattern, start)
        if token is None:
            raise refused(self._pattern, start, repr(self._pattern[start : start + 2]).replace("\\\\", "\\"))
        self._at = token.end
        return token.outside

    def _quotation(self) -> str:
        end = self._pattern.find("\\E", self._at + 2)
        end = len(self._pattern) if end < 0 else end
        quoted = self._pattern[self._at + 2 : end]
        self._at = end + 2
        return re.escape(quoted)

    def _back_reference(self, reference: re.Match[str]) -> str:
        if reference[1]:
            self._at = reference.end()
            return f"(?P={reference[1]})"
        digits = reference[2][:_MOST_DIGITS]
        # Java takes as many digits as make a group there is.
        while len(digits) > 1 and int(digits) > self._groups:
            digits = digits[:-1]
        if int(digits) > self._groups:
            raise refused(self._pattern, self._at, f"\\{digits}", "refers to no group before it")
        self._at += 1 + len(digits)
        return f"(?:\\{digits})"

    def _class(self) -> str:
        start = self._at
        self._at += 1
        out = ["["]
        if self._pattern.startswith("^", self._at):
            self._at += 1
            out.append("^")
        if self._pattern.startswith("]", self._at):
            raise refused(self._pattern, self._at, "']'", r"begins a class; write \]")
        while self._at < len(self._pattern) and self._pattern[self._at] != "]":
            out.append(self._members())
        if self._at == len(self._pattern):
            raise refused(self._pattern, start, "'['", "is never closed")
        self._at += 1
        return "".join(out) + "]"

    def _members(self) -> str:
        """Returns one member of a class, or a range; a hyphen after a set, as in `[\\w-.]`, is one itself."""
        first, hyphen = self._member(), self._at
        if not _is_character(first) or not _RANGE.match(self._pattern, hyphen):
            return first
        self._at += 1
        last = self._member()
        if not _is_character(last):
            raise refused(self._pattern, hyphen, "'-'", "begins a range that ends with no character")
        return f"{first}-{last}"

    def _member(self) -> str:
        at, character = self._at, self._pattern[self._at]
        for construct, name in (("&&", "the intersection '&&'"), ("[", "the class in a class '['"), ("\\Q", "'\\Q'")):
            if self._pattern.startswith(construct, at):
                raise refused(self._pattern, at, name)
        if character != "\\":
            self._at += 1
            # Python reserves `--`, `&&`, `||` and `~~` in classes.
            return f"\\U{ord(character):08x}" if character in "-&|~" else character
        token = read(self._pattern, at)
        if token is None or token.inside is None:
            raise refused(self._pattern, at, f"{self._pattern[at : at + 2]!r} in a class".replace("\\\\", "\\"))
        self._at = token.end
        return token.inside


_TOKEN = re.compile(r"\\(.)|\$\{([A-Za-z][A-Za-z0-9]*)\}|\$([0-9]+)|([^\\$]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Replacement:
    """Text and groups, in order; a number or a name that isn't text is a group."""

    parts: tuple[tuple[str, str | int], ...]

    def expand(self, match: Match) -> str:
        """Returns the text that represents a match; a group that took no part is empty."""
        return "".join(text + (match[group] or "" if group != "" else "") for text, group in self.parts)

    def everywhere(self, pattern: BoundedPattern, text: str) -> str:
        """Replaces every match in a text, in order, as Java's `replaceAll` does.

        Python would take a match of nothing and a longer one at the same place; Java goes on after the first.
        """
        out, done, at = list[str](), 0, 0
        while at <= len(text) and (match := pattern.search(text, at)) is not None:
            out += (text[done : match.start()], self.expand(match))
            done = match.end()
            at = done + (match.start() == done)
        return "".join((*out, text[done:]))


def replacement(text: str, pattern: BoundedPattern) -> Replacement:
    r"""Returns the replacement of a text for matches of a pattern.

    Raises:
        ConfigurationError: a `$` or `\` is at the end, or names no group.
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


def _group(text: str, token: re.Match[str], pattern: BoundedPattern) -> tuple[str | int, int]:
    """Returns the group a token names, and how many of its digits belong to the text after it."""
    name, digits = token[2], token[3] or ""
    if name is not None:
        if name not in pattern.group_names:
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
