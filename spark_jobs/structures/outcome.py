"""What came of a pull, beside the rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the manifest of a landing says of the registry.

    Attributes:
        watermark: where the next run begins; None: it reads everything.
        source_count: structures that the registry holds among those that are meant.
        complete: what was not landed is not there.
        transaction: the newest transaction of the registry's log that the landing includes.
        missing: what of a backfill's interval was not landed, a sentence each.
        left_out: transactions of which not all was landed, so that none of them is told.
    """

    watermark: str | None
    source_count: int
    complete: bool
    transaction: int | None = None
    missing: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()
