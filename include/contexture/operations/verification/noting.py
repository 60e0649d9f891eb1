"""A verification as a row of the operational tables."""

from __future__ import annotations

from contexture.monitoring.rows import VerificationRow
from contexture.operations.verification.findings import Verification


def as_row(found: Verification, report: str) -> VerificationRow:
    """The row of a verification, whose report lies at a path below the home."""
    count = found.differences.get
    return VerificationRow(
        publication=found.publication,
        verified_at=found.verified_at,
        equal=found.is_equal,
        told=found.told,
        sequence=found.sequence,
        held=found.held,
        records=found.records,
        missing=count("missing", 0),
        extra=count("extra", 0),
        different=count("different", 0),
        misordered=count("order", 0),
        seconds=found.seconds,
        report=report,
    )
