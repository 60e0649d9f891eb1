"""Java's regular expressions in Python's, as far as both can say the same; what isn't translated is refused by place.

Translated: named groups, `\\Q...\\E`, POSIX classes (`\\p{Alpha}`), `\\h \\v \\R`, `\\x{h} \\0n \\cX \\e \\a`, the
line ends of Java in `.` and `$`, possessive quantifiers, atomic groups, `(?i)` and `(?s)` at the beginning, `(?i:...)`.
Refused: class intersections and unions (`[a&&b]`, `[a[b]]`), Unicode classes (`\\p{L}`), other flags, `\\G \\X \\N`,
and what Java itself refuses. `\\d \\w \\s` know ASCII only, and `\\b` all letters, as in Java.
"""

from __future__ import annotations

import re
from functools import lru_cache

from contexture.errors import ConfigurationError
from contexture.publications.name_files import java_escapes as escapes

_GROUP_OPENERS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:")
_NAMED_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_FLAGS = re.compile(r"\(\?([is]{1,2})\)")
_RANGE = re.compile(r"-[^\]]", re.DOTALL)
_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")
_MOST_DIGITS = 9  # no expression has as many groups
_NEXT_STEP = "write it in another way; the how-to on moving from Cygnus lists what is understood"
_ANY = r"[^\n\r\x85\u2028\u2029]"
_END = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)"


def refused(pattern: str, position: int, construct: str, why: str = "isn't translated from Java") -> ConfigurationError:
    """The error that shows a construct and where it stands (counted from 1)."""
    return ConfigurationError(
        f"the regular expression {pattern!r}: {construct} at position {position + 1} {why}",
        next_step=_NEXT_STEP,
    )


@lru_cache(1024)
def compile_java(pattern: str) -> re.Pattern[str]:
    """The Python expression that matches what Java's would.

    Raises:
        ConfigurationError: the pattern holds what can't be translated, or is wrong in Java too.
    """
    translated = _Translation(pattern).run()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        # Its position is that in the translation, which nobody has seen.
        reason = error.msg if isinstance(error, re.error) else str(error)
        raise ConfigurationError(
            f"the regular expression {pattern!r} can't be used: {reason}", next_step=_NEXT_STEP
        ) from None


def _is_character(member: str) -> bool:
    """Whether a member of a class stands for one character, so that a range can begin or end with it."""
    return len(member) == 1 or member.startswith("\\U")


class _Translation:
    """One pass over a pattern; `_at` is where it stands."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = 0
        self._any = _ANY

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
        self._at += 1
        return {".": self._any, "$": _END, "}": r"\}", "]": r"\]"}.get(character, character)

    def _count(self) -> str:
        count = _COUNT.match(self._pattern, self._at)
        if count is None:
            raise refused(self._pattern, self._at, "'{'", "is no count such as {2,3}")
        self._at = count.end()
        return count[0]

    def _group(self) -> str:
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
        if reference := escapes.REFERENCE.match(self._pattern, start):
            return self._back_reference(reference)
        token = escapes.read(self._pattern, start)
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
        """One member of a class, or a range; a hyphen after a set, as in `[\\w-.]`, is one itself."""
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
        token = escapes.read(self._pattern, at)
        if token is None or token.inside is None:
            raise refused(self._pattern, at, f"{self._pattern[at : at + 2]!r} in a class".replace("\\\\", "\\"))
        self._at = token.end
        return token.inside
