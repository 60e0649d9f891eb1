"""What splitting saw that a person should know; nothing of it stops the splitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingCode = Literal[
    "not-maintainable",
    "unknown-kind",
    "no-identity",
    "urn-differs",
    "outside",
    "notice",
    "late-header",
    "invalid",
    "unchecked",
]
"""What was found.

- `not-maintainable`: an artefact of its own in this message, but no maintainable one: it has no URN to be told by.
- `unknown-kind`: the model has no such kind; it is split as it is, with the URN that it declares.
- `no-identity`: agency or id are missing, so that there is no URN.
- `urn-differs`: the declared URN isn't the one that kind, agency, id and version give.
- `outside`: something stands where structures are told from each other, and is none: it is in no artefact.
- `notice`: the sender says something about the message as a whole, such as an error or a truncation.
- `late-header`: the header follows the structures; messages around artefacts have none.
- `invalid`: the schema of the format refuses the message around the artefact.
- `unchecked`: the artefact is too large to be validated.
"""


_AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    Attributes:
        code: which of the known things it is.
        message: what a person should know, with names and ids, but no content.
        offset: byte of the message in UTF-8 where it stands, where that is known.
    """

    code: FindingCode
    message: str
    offset: int | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def note(findings: list[Finding], finding: Finding) -> None:
    """Adds a finding, as long as there are not too many to be read."""
    if len(findings) < _AT_MOST:
        findings.append(finding)
    elif len(findings) == _AT_MOST:
        findings.append(Finding(finding.code, f"there is more than these {_AT_MOST:,} findings", finding.offset))
