"""A run as one row: counts, samples and facts that expectations evaluate beside the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

import pyarrow.dataset as ds

from contexture.events.rules import Rule, Setting, Severity
from contexture.publications import Publication, SdmxPublication
from contexture.sources.ngsi.rules import catalogue as of_entities
from contexture.sources.sdmx.rules import catalogue as of_structures
from contexture.storage.quarantine import SAMPLES, RuleSample, identity_text
from contexture.storage.quarantine import RuleSample as ConsistencyViolation

ENTITY: Final = ("service_path", "id", "type")
STRUCTURE: Final = ("urn", "kind")

_LOOKED_AT: Final = 100_000


def warned(rows: Any, counts: Mapping[str, int], named: Sequence[str]) -> dict[str, tuple[RuleSample, ...]]:
    """The first few of what each rule warned of, as far as single rows tell it.

    Args:
        rows: the dataset of what was evaluated, with the column `warnings`: names of rules, with commas.
        counts: how often each rule warned.
        named: the columns by which people know a row.
    """
    # A dictionary for its order: by attribute, an entity has a row for each of them.
    found: dict[str, dict[str, None]] = {rule: {} for rule in counts}
    for rule, who in _warnings(rows, named) if counts else ():
        if rule in found and len(found[rule]) < SAMPLES:
            found[rule][who] = None
            if all(len(names) >= min(SAMPLES, counts[each]) for each, names in found.items()):
                break
    return {rule: tuple(RuleSample(identity=who) for who in names) for rule, names in found.items() if names}


def _warnings(rows: Any, named: Sequence[str]) -> Iterator[tuple[str, str]]:
    looked_at = 0
    for batch in rows.to_batches(columns=["warnings", *named], filter=ds.field("warnings").is_valid()):
        for row in batch.to_pylist():
            who = identity_text(*([""] if len(named) == 2 else []), *(row[name] for name in named))
            yield from ((rule, who) for rule in row["warnings"].split(","))
        looked_at += batch.num_rows
        # Rules about a whole snapshot are no row's: who looks for them among rows looks at all.
        if looked_at >= _LOOKED_AT:
            return


SubjectFrame = Literal["entities", "structures"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What rows are about.

    Attributes:
        frame: the name of the frame that has a row for each of them, which is also their name.
        key: the column that tells which one it is.
        rules: the row rules about them.
        rejecting: those of the rules whose error is that of none of them, so that it rejects the run.
        severities: gives the severity of each rule by a publication's settings.
    """

    frame: SubjectFrame
    key: str
    rules: tuple[Rule, ...]
    rejecting: tuple[str, ...]
    severities: Callable[[Mapping[str, Setting]], Mapping[str, Severity]]


ENTITIES = Subject("entities", "identity", of_entities.RULES, of_entities.REJECTING, of_entities.severities)
STRUCTURES = Subject("structures", "urn", of_structures.RULES, of_structures.REJECTING, of_structures.severities)


def subject_of(publication: Publication) -> Subject:
    """What the source of a publication holds."""
    return STRUCTURES if isinstance(publication, SdmxPublication) else ENTITIES


@dataclass(frozen=True, slots=True)
class SharedTopic:
    """A topic of two identities: the one that has it, and the one that got it as well, unless it was refused."""

    topic: str
    identity: str
    holder: str
    refused: bool


@dataclass(frozen=True, slots=True)
class TranscodedStructure:
    """A structure that was converted: from and into which media type, and what was lost, if anything."""

    urn: str
    transcoded_from: str
    media_type: str
    lost: str | None


@dataclass(frozen=True, slots=True)
class ObservedSample:
    """A structure that breaks a rule about all that is held, and how."""

    rule: str
    urn: str
    message: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The counts of a run that the checkpoint judges and the report shows.

    Attributes:
        read: entities or structures read from the source in this run.
        accepted: those that passed the row rules, the rows of the frame.
        quarantined: those that a row rule refused.
        in_source: those that the source holds; None: this run could not know.
        unchanged: those that the target already holds as they are.
        newest_modified_at: newest modification time that the source showed; None: it showed none. Without a zone it
            is local time, which is what Spark's `collect` gives.
        reference_time: what "now" means for this run, the same when it is prepared again.
        quarantined_by_rule: those refused by the rule that refused them.
        warnings_by_rule: violations that do not refuse, by rule.
        of_snapshot: how often the snapshot breaks rules about the whole of it that are errors.
        retried: only chosen events were tried again, or those of a past interval sent again, so that nothing follows
            for the source as a whole.
        collisions: events whose topic is another identity's.
        collided: the first few of them.
        notified: how many of those read were told one after the other; one may be among them again and again.
        broken: a few of what broke each row rule.
    """

    subject: ClassVar[Subject] = ENTITIES

    read: int
    accepted: int
    quarantined: int
    in_source: int | None
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
    broken: Mapping[str, Sequence[ConsistencyViolation]] = field(default_factory=dict)

    @property
    def quarantined_share(self) -> float:
        """What was quarantined as a share of what the source holds, or of what was read where that is unknown."""
        whole = max(self.in_source or self.read, self.quarantined)
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
            "in_source": self.in_source,
            "quarantined_share": self.quarantined_share,
            "newest_age_seconds": self.newest_age_seconds,
            **{rule: self.of_snapshot.get(rule, 0) for rule in self.subject.rejecting},
        }

    def observed(self, column: str) -> str:
        """What a column of the row says, for people."""
        if column == "quarantined_share":
            whole = max(self.in_source or self.read, self.quarantined)
            return f"{self.quarantined:,} of {whole:,} {self.subject.frame} ({self.quarantined_share:.2%})"
        if column == "in_source":
            return "not known" if self.in_source is None else f"{self.in_source:,} in the source"
        if column in self.subject.rejecting:
            return f"{self.row()[column] or 0:,} found"
        age = self.newest_age_seconds
        return "no change known" if age is None else f"{age:,.0f} s old"


@dataclass(frozen=True, slots=True)
class StructureSummary(RunSummary):
    """The counts of a run of a registry.

    Attributes:
        inexpressible: structures that the registry holds and can't write in the form that was asked for.
        unrouted: accepted structures that no route selects, so that they go nowhere.
        registry_transaction: the newest transaction of the registry that the run includes; None where it has none.
        transcoded: accepted structures that were converted, because the registry doesn't write them in the form.
        conversions: the first few of them.
        samples: structures that break rules about all that is held, the first few of each rule.
        missing: what of a backfill's interval is not among what was read, a sentence each.
    """

    subject: ClassVar[Subject] = STRUCTURES

    inexpressible: int = 0
    unrouted: int = 0
    registry_transaction: int | None = None
    transcoded: int = 0
    conversions: Sequence[TranscodedStructure] = ()
    samples: Sequence[ObservedSample] = ()
    missing: Sequence[str] = ()

    @property
    def accepted_share(self) -> float:
        """Accepted structures as a share of all whose content was asked for."""
        return self.accepted / self._asked_for if self._asked_for else 1.0

    @property
    def dangling(self) -> int:
        """Structures that refer to something that isn't held."""
        return self._told("dangling-reference")

    @property
    def _asked_for(self) -> int:
        return self.accepted + self.quarantined + self.inexpressible

    @property
    def _unmatched(self) -> int | None:
        """By how many what was read differs from what the registry lists; None: not all was read."""
        return None if self.in_source is None else self._told("count-mismatch")

    def _told(self, rule: str) -> int:
        return self.of_snapshot.get(rule, 0) or self.warnings_by_rule.get(rule, 0)

    def row(self) -> dict[str, float | None]:
        """The row that table expectations see."""
        return {
            **RunSummary.row(self),
            **{rule: self._told(rule) for rule in self.subject.rejecting},
            "count-mismatch": self._unmatched,
            "accepted_share": self.accepted_share,
            "dangling_share": self.dangling / self.accepted if self.accepted else 0.0,
        }

    def observed(self, column: str) -> str:
        """What a column of the row says, for people."""
        if column == "accepted_share":
            return f"{self.accepted:,} of {self._asked_for:,} structures ({self.accepted_share:.2%})"
        if column == "dangling_share":
            return f"{self.dangling:,} of {self.accepted:,} structures"
        if column == "count-mismatch":
            return "not known" if self._unmatched is None else f"{self._unmatched:,} too many or too few"
        return RunSummary.observed(self, column)
