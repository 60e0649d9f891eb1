"""What the scheduler asks of the stage job, and what the job answers: two files, no secrets in either."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from contexture.outbox.manifest import Document, Mode
from contexture.publications import Publication


class Retry(Document):
    """Quarantined events of an outbox that are tried again: those that a rule of these refused, or all."""

    outbox: str
    rules: tuple[str, ...] = ()


class StageOrder(Document):
    """One stage.

    Attributes:
        run: folder name of the run.
        mode: what to read and send.
        sequence: the number the outbox will carry.
        interval: the data interval of a backfill, whose archive is replayed; None otherwise.
        retry: what is tried again instead of reading the source; None otherwise.
        baseline: what the registry holds becomes state and nothing is sent: the first run of a publication that tells
            changes only.
        told: the registry transaction up to which another instance has told the registry's log, where this one begins
            without state; None otherwise.
    """

    publication: Publication
    fingerprint: str
    home: str
    run: str
    mode: Mode
    sequence: int
    republish: bool = False
    confirm_shrink: bool = False
    interval: tuple[datetime, datetime] | None = None
    retry: Retry | None = None
    baseline: bool = False
    told: int | None = None


class StageResult(Document):
    """The answer: an outbox, or an error as `ContextureError.as_dict` gives it."""

    outbox: str | None = None
    sequence: int | None = None
    records: int = 0
    shards: tuple[int, ...] = ()
    approved: bool | None = None
    report: str | None = None
    seconds: Mapping[str, float] = {}
    error: Mapping[str, object] | None = None
