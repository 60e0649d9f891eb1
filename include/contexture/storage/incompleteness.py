"""Reads of a source that do not show what was deleted there, one run after another."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from contexture.storage.documents import StoredDocument
from contexture.storage.manifests import LandingManifest

LASTING_RUNS: Final = 3
"""A single incomplete read is ordinary: entities come and go while they are read, and the next run reads again."""

_AGAIN_RUNS: Final = 100


class Incompleteness(StoredDocument):
    """Consecutive concluded runs that could not show which entities were deleted, though they should.

    Attributes:
        since: when the first of them concluded.
        runs: how many they are.
        why: what the last of them found.
        next_step: what to do about it.
    """

    since: datetime
    runs: int
    why: str
    next_step: str

    @property
    def is_lasting(self) -> bool:
        """Whether it is a state of the publication, and not an accident of one read."""
        return self.runs >= LASTING_RUNS

    @property
    def is_alert_due(self) -> bool:
        """Whether people are alerted after this run: when it becomes lasting, then after each further 100 runs."""
        return self.runs == LASTING_RUNS or (self.is_lasting and self.runs % _AGAIN_RUNS == 0)

    @property
    def sentence(self) -> str:
        """Returns since when, why and what to do, in one text."""
        return (
            f"deletions are not detected since {self.since:%Y-%m-%d %H:%M} UTC ({self.runs} runs): {self.why}. "
            f"Next: {self.next_step}"
        )


def incompleteness_after(
    landing: LandingManifest | None, before: Incompleteness | None, at: datetime
) -> Incompleteness | None:
    """Returns the incompleteness after a run of a publication that detects deletions by reading the whole source.

    Args:
        landing: of the run; None where retention has removed it, or where it cannot be read.
        before: after the run before.
        at: when the run concludes.

    Returns:
        None after a complete read. As before where the run did not read the source (its inbox, its quarantine, the
        archive), or where there is no landing.
    """
    if landing is None or not landing.knows_source:
        return before
    if landing.complete:
        return None
    why, next_step = _cause(landing)
    return Incompleteness(
        since=before.since if before else at, runs=before.runs + 1 if before else 1, why=why, next_step=next_step
    )


def _cause(landing: LandingManifest) -> tuple[str, str]:
    # A run that reads changes lands each entity once more, as a row that only names it.
    seen = landing.present if landing.mode == "changes" else landing.rows
    if seen < landing.source_count:
        return (
            f"the last read found {seen} of the {landing.source_count} entities that the broker counts",
            "check what shortens the broker's responses (a proxy, its database, its log of errors), and "
            "source.walk_deadline_seconds; then start a run in mode full; where nothing is deleted in the source, set "
            "source.detect_deletions to false",
        )
    return (
        "the broker's response does not show the identity of every entity, or ended early",
        "read the log of stage of the last run; search the broker for entities with an attribute that is called like "
        "a part of the identity (servicePath) and rename it, then start a run in mode full; where nothing is deleted "
        "in the source, set source.detect_deletions to false",
    )
