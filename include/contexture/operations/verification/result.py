"""The result of a verification, and its row in the operational tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from contexture.monitoring.rows import VerificationRow
from contexture.storage.documents import StoredDocument

Kind = Literal["missing", "extra", "different", "order"]
KINDS: Final[tuple[Kind, ...]] = ("missing", "extra", "different", "order")
SAMPLES: Final = 20
"""How many differences of each kind are shown."""
_LONGEST_NAME: Final = 300

Basis = Literal["keys", "records"]
Against = Literal["sent", "source"]

WHAT_TO_DO: Final = (
    "read the report, find out which other program writes to these topics or removed records from them, then start a "
    "run of the publication in mode full: it sends everything again, and tombstones for what the source no longer "
    "holds. What is extra and was never the publication's stays until its writer deletes it, or the topic is created "
    "again"
)


class DifferenceSample(StoredDocument):
    """One difference. `name`: an identity or a record's key; `partition`: None where none is concerned."""

    kind: Kind
    topic: str
    partition: int | None
    name: str
    detail: str


class VerificationResult(StoredDocument):
    """One look at the topics of a publication.

    Attributes:
        against: `sent`: what state and outboxes say was sent; `source`: what the source holds.
        verified_at: when the ends were taken, to which the topics were read.
        basis: `keys`: the last value of each key and partition against state; `records`: each record against the
            archive of outboxes, where records have no key of their own.
        sequence, outbox: of the run whose state the topics were compared with.
        ledger: the sequence of the last row of each shard in the ledger.
        held: how many keys (or records) the topics should hold.
        records: how many were read, and up to which ends.
        compared: how many of those found were compared `bytes` for bytes, by `content`, or by `presence` alone;
            with the `source`: how many last records have the body, headers and time of what it holds.
        unjudged: how many could not be judged, by the reason.
        differences: how many there are of each kind.
    """

    publication: str
    verified_at: datetime
    seconds: float
    against: Against = "sent"
    basis: Basis
    generation: int
    sequence: int
    outbox: str | None
    ledger: Mapping[int, int]
    topics: int
    partitions: int
    missing_topics: tuple[str, ...]
    held: int
    records: int
    compared: Mapping[str, int]
    unjudged: Mapping[str, int]
    differences: Mapping[Kind, int]
    samples: tuple[DifferenceSample, ...]

    @property
    def is_equal(self) -> bool:
        """Whether no difference was found."""
        return not any(self.differences.values())

    @property
    def summary(self) -> str:
        if self.is_equal:
            held = " what the source holds" if self.against == "source" else " as they should be"
            return f"{self.held} {self.basis} in {self.topics} topics are{held}"
        counts = ", ".join(f"{self.differences[kind]} {kind}" for kind in KINDS if self.differences.get(kind))
        other = "what the source holds" if self.against == "source" else "what was sent"
        return f"the topics differ from {other}: {counts}, of {self.held} {self.basis}"


def shown_name(raw: bytes | None) -> str:
    """An identity or a key as people read it; it is untrusted input."""
    if raw is None:
        return "(no key)"
    text = raw.decode(errors="replace")
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"


def as_row(found: VerificationResult, report: str) -> VerificationRow:
    """The row of a verification, whose report lies at a path below the home."""
    count = found.differences.get
    return VerificationRow(
        publication=found.publication,
        verified_at=found.verified_at,
        equal=found.is_equal,
        summary=found.summary,
        sequence=found.sequence,
        expected=found.held,
        records=found.records,
        missing=count("missing", 0),
        extra=count("extra", 0),
        different=count("different", 0),
        misordered=count("order", 0),
        seconds=found.seconds,
        report=report,
    )
