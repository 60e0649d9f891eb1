"""Problems of a publication file, shown as a compiler shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contexture.errors import ConfigurationError

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ModelProblem:
    """One reason to refuse a publication.

    Attributes:
        location: the key to change, as a path from the top of the file.
        message: what is wrong.
        hint: what to write instead.
        involves: further keys that take part in it.
        at_key: the key itself is wrong, not its value.
    """

    location: Location
    message: str
    hint: str
    involves: tuple[Location, ...] = ()
    at_key: bool = False


class ModelProblemsError(ValueError):
    """All reasons to refuse a publication; a `ValueError`, because pydantic takes no others from a validator."""

    def __init__(self, findings: Iterable[ModelProblem]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(f"{dotted(each.location)}: {each.message} ({each.hint})" for each in self.findings))


def dotted(location: Location) -> str:
    """Returns the location as people write it: `source.types[0]`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


_LINE_SHOWN = 160
_LINE_SEARCHED = 4000
_SENSITIVE = r"passw(?:or)?d|passphrase|secret|token|api[_.-]?key|private[_.-]?key|credentials?|authorization|jaas"
_SENSITIVE_NAME = re.compile(_SENSITIVE, re.IGNORECASE)
_SENSITIVE_VALUE = re.compile(rf"((?:{_SENSITIVE})[\w.-]*[\"']?\s*[:=]).*", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"(://)[^@\s/]*@")


def looks_secret(name: str) -> bool:
    """Whether a key of this name usually holds a secret."""
    return _SENSITIVE_NAME.search(name) is not None


def without_secrets(line: str) -> str:
    """Returns the line with everything that looks like the value of a secret replaced."""
    # No more is ever shown; a long line would be searched again from each such word in it.
    shown = line if len(line) <= _LINE_SEARCHED else f"{line[:_LINE_SEARCHED]}…"
    return _URL_CREDENTIALS.sub(r"\1***@", _SENSITIVE_VALUE.sub(r"\1 ***", shown))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to know about a publication file.

    Attributes:
        path: the file.
        line: from 1; 0 when the problem is with the file as a whole.
        column: from 1, in characters.
        length: how many characters the caret underlines.
        location: the key as people write it, `source.types[0]`; empty for the file as a whole.
        message: what is wrong.
        hint: what was expected, or what to write instead.
        source_line: the line of the file, without secrets.
        severity: an error makes the publication unusable, a note doesn't.
    """

    path: Path
    line: int
    column: int
    length: int
    location: str
    message: str
    hint: str
    source_line: str = ""
    severity: Literal["error", "note"] = "error"

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}:{self.column}" if self.line else f"{self.path}"
        lines = [f"{where}: {self.severity}: {self.message}", *self._excerpt()]
        margin = " " * len(str(self.line))
        return "\n".join([*lines, f" {margin} = {self.hint}"] if self.hint else lines)

    def _excerpt(self) -> list[str]:
        if not self.line or not self.source_line or self.column > _LINE_SHOWN:
            return []
        margin = " " * len(str(self.line))
        shown = self.source_line[:_LINE_SHOWN]
        # Tabs keep their width in the line of the caret.
        before = "".join(char if char == "\t" else " " for char in shown[: self.column - 1])
        caret = "^" * max(1, min(self.length, len(shown) - self.column + 1))
        return [f" {self.line} | {shown}", f" {margin} | {before}{caret}"]

    def as_dict(self) -> dict[str, object]:
        return {
            "path": str(self.path),
            "line": self.line,
            "column": self.column,
            "location": self.location,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
        }


class PublicationError(ConfigurationError):
    """One or more publication files can't be used; `problems` has every reason, `path` the file or folder."""

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        found = tuple(problems)
        noun = "problem" if len(found) == 1 else "problems"
        text = "\n\n".join(str(each) for each in found)
        super().__init__(
            f"{path}: {len(found)} {noun}\n\n{text}",
            next_step="change the marked lines, then run `contexture check` on the file",
            path=path,
            problems=found,
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem, in the order of the file."""
        found = self.context["problems"]
        return found if isinstance(found, tuple) else ()

    @property
    def path(self) -> Path:
        """The file, or the folder when several files are wrong."""
        return Path(str(self.context["path"]))

    def __str__(self) -> str:
        return f"{self.message}\n\nNext: {self.next_step}"

    def as_dict(self) -> dict[str, object]:
        """Returns the error for JSON, each problem by itself."""
        context = {"path": str(self.path), "problems": [problem.as_dict() for problem in self.problems]}
        return {**super().as_dict(), "context": context}
