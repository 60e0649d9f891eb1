"""What is known of a run as a whole, in one row beside the entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from contexture.ngsi.rules.catalogue import REJECTING


@dataclass(frozen=True, slots=True)
class SharedTopic:
    """A topic of two identities: the one that has it, and the one that got it as well, unless it was refused."""

    topic: str
    identity: str
    holder: str
    refused: bool


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The counts of a run that the checkpoint judges and the report shows.

    Attributes:
        read: entities read from the source in this run.
        accepted: entities that passed the row rules, the rows of the `entities` frame.
        quarantined: entities that a row rule refused.
        source_entities: entities that the source holds; None: this run could not know.
        unchanged: entities that the target already holds as they are.
        newest_modified_at: newest modification time that the source showed; None: it showed none. Without a zone it
            is local time, which is what Spark's `collect` gives.
        reference_time: what "now" means for this run, the same when it is prepared again.
        quarantined_by_rule: refused entities by the rule that refused them.
        warnings_by_rule: violations that do not refuse, by rule.
        of_snapshot: how often the snapshot breaks rules about the whole of it that are errors.
        retried: only chosen events were tried again, or those of a past interval sent again, so that nothing follows
            for the source as a whole.
        collisions: events whose topic is another identity's.
        collided: the first few of them.
        notified: how many of the entities read were notified; one entity may be among them again and again.
    """

    read: int
    accepted: int
    quarantined: int
    source_entities: int | None
    unchanged: int
    newest_modified_at: datetime | None
    reference_time: datetime
    quarantined_by_rule: Mapping[str, int] = field(default_factory=dict)
    warnings_by_rule: Mapping[str, int] = field(default_factory=dict)
    of_snapshot: Mapping[str, int] = field(default_factory=dict)
    retried: bool = False
    collisions: int = 0
    collided: Sequence[SharedTopic] = ()
    notified: int = 0

    @property
    def quarantined_share(self) -> float:
        """Quarantined entities as a share of what the source holds, or of what was read where that is unknown."""
        whole = max(self.source_entities or self.read, self.quarantined)
        return self.quarantined / whole if whole else 0.0

    @property
    def newest_age_seconds(self) -> float | None:
        """Seconds from the newest change to the reference time; negative: the change lies ahead of it."""
        if self.newest_modified_at is None:
            return None
        return self.reference_time.timestamp() - self.newest_modified_at.timestamp()

    def row(self) -> dict[str, float | None]:
        """The row that table expectations see."""
        return {
            "read": self.read,
            "accepted": self.accepted,
            "quarantined": self.quarantined,
            "unchanged": self.unchanged,
            "source_entities": self.source_entities,
            "quarantined_share": self.quarantined_share,
            "newest_age_seconds": self.newest_age_seconds,
            **{rule: self.of_snapshot.get(rule, 0) for rule in REJECTING},
        }
