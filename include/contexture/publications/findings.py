"""What is wrong with values that are each right by themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
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


class FindingsError(ValueError):
    """All reasons to refuse a publication; a `ValueError`, for pydantic takes no others from a validator."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(f"{dotted(each.location)}: {each.message} ({each.hint})" for each in self.findings))


def dotted(location: Location) -> str:
    """The location as people write it: `source.types[0]`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
