"""The summary of a run: counts, samples and facts that expectations judge beside the rows."""

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

ENTITY: Final = ("service_path", "id", "type")
STRUCTURE: Final = ("urn", "kind")

_SEARCHED_ROWS: Final = 100_000


def sample_warnings(rows: Any, counts: Mapping[str, int], named: Sequence[str]) -> dict[str, tuple[RuleSample, ...]]:
    """Returns the first few rows of which each rule warned; rules about the whole snapshot name no rows.

    Args:
        rows: the dataset of the evaluated rows, with the column `warnings`: names of rules, with commas.
        counts: how often each rule warned.
        named: the columns that identify a row for people.
    """
    # A dictionary, which keeps the order without repetitions, because an entity may have a row for each attribute.
    found: dict[str, dict[str, None]] = {rule: {} for rule in counts}
    for rule, identity in _warnings(rows, named) if counts else ():
        if rule in found and len(found[rule]) < SAMPLES:
            found[rule][identity] = None
            if all(len(names) >= min(SAMPLES, counts[each]) for each, names in found.items()):
                break
    return {rule: tuple(RuleSample(identity=identity) for identity in names) for rule, names in found.items() if names}


def _warnings(rows: Any, named: Sequence[str]) -> Iterator[tuple[str, str]]:
    searched = 0
    for batch in rows.to_batches(columns=["warnings", *named], filter=ds.field("warnings").is_valid()):
        for row in batch.to_pylist():
            identity = identity_text(*([""] if len(named) == 2 else []), *(row[name] for name in named))
            yield from ((rule, identity) for rule in row["warnings"].split(","))
        searched += batch.num_rows
        # No row names a rule about the whole snapshot, so that a search for one would read all rows.
        if searched >= _SEARCHED_ROWS:
            return


SubjectFrame = Literal["entities", "structures"]


@dataclass(frozen=True, slots=True)
class Subject:
    """The kind of objects that rows are about: entities or structures.

    Attributes:
        frame: the name of the frame with a row for each object, which is also the name of the objects.
        key: the column that identifies an object.
        rules: the row rules about them.
        rejecting: the rules that no single object breaks, so that an error rejects the run.
        severities: returns the severity of each rule for a publication's settings.
    """

    frame: SubjectFrame
    key: str
    rules: tuple[Rule, ...]
    rejecting: tuple[str, ...]
    severities: Callable[[Mapping[str, Setting]], Mapping[str, Severity]]


ENTITIES = Subject("entities", "identity", of_entities.RULES, of_entities.REJECTING, of_entities.severities)
STRUCTURES = Subject("structures", "urn", of_structures.RULES, of_structures.REJECTING, of_structures.severities)


def subject_of(publication: Publication) -> Subject:
    """Returns the kind of objects that a publication reads."""
    return STRUCTURES if isinstance(publication, SdmxPublication) else ENTITIES


@dataclass(frozen=True, slots=True)
class SharedTopic:
    """A topic of two identities: the holder, and the identity that got it as well, unless it was refused."""

    topic: str
    identity: str
    holder: str
    refused: bool


@dataclass(frozen=True, slots=True)
class TranscodedStructure:
    """A converted structure: its media types before and after, and what was lost, if anything."""

    urn: str
    transcoded_from: str
    media_type: str
    lost: str | None


@dataclass(frozen=True, slots=True)
class ObservedSample:
    """A structure that breaks a rule about all stored structures, and how."""

    rule: str
    urn: str
    message: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The counts of a run that the checkpoint judges and the report shows.

    Attributes:
        read: entities or structures read from the source in this run.
        accepted: those that passed the row rules, which are the rows of the frame.
        quarantined: those that a row rule refused.
        in_source: those in the source; None if this run could not know.
        unchanged: those that the target already has unchanged.
        newest_modified_at: the newest modification time in the source; None if the source has none. Without a zone it
            is local time, which is what Spark's `collect` returns.
        reference_time: what "now" means for this run, also if it is prepared again.
        quarantined_by_rule: quarantined ones by the rule that refused them.
        warnings_by_rule: violations that do not refuse, by rule.
        of_snapshot: how often the snapshot breaks each rule about the whole of it that is an error.
        retried: only selected events were tried again, or a past interval was sent again, so that nothing follows for
            the source as a whole.
        collisions: events whose topic belongs to another identity.
        collided: the first few collisions.
        notified: how many of those read were notified; an entity may occur several times.
        broken: a few samples that broke each row rule.
        never_read: no earlier run has read anything, and the target has nothing.
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
    broken: Mapping[str, Sequence[RuleSample]] = field(default_factory=dict)
    never_read: bool = False

    @property
    def is_nothing_yet(self) -> bool:
        """Whether the source is empty, and nothing shows that it ever was not."""
        return self.never_read and self.in_source == 0 and self.read == 0

    @property
    def quarantined_share(self) -> float:
        """The quarantined share of what is in the source, or of what was read if that is unknown."""
        whole = max(self.in_source or self.read, self.quarantined)
        return self.quarantined / whole if whole else 0.0

    @property
    def newest_age_seconds(self) -> float | None:
        """The seconds from the newest change to the reference time; negative if the change is later."""
        if self.newest_modified_at is None:
            return None
        return self.reference_time.timestamp() - self.newest_modified_at.timestamp()

    def row(self) -> dict[str, float | None]:
        """Returns the row that expectations on the summary judge."""
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
        """Describes the value of a column of the row for people."""
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
        inexpressible: structures that the registry has and cannot write in the requested format.
        unrouted: accepted structures that no route selects, so that they are not sent.
        registry_transaction: the newest transaction of the registry that the run includes; None where it has none.
        transcoded: accepted structures that were converted, because the registry does not write them in the format.
        conversions: the first few of them.
        samples: structures that break rules about all stored structures, the first few of each rule.
        missing: the parts of a backfill's interval that were not read, a sentence each.
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
        """The accepted share of all structures whose content was requested."""
        return self.accepted / self._requested if self._requested else 1.0

    @property
    def dangling(self) -> int:
        """The number of structures that refer to something that is not stored."""
        return self._violations("dangling-reference")

    @property
    def _requested(self) -> int:
        return self.accepted + self.quarantined + self.inexpressible

    @property
    def _unmatched(self) -> int | None:
        """The difference between what was read and what the registry lists; None if not everything was read."""
        return None if self.in_source is None else self._violations("count-mismatch")

    def _violations(self, rule: str) -> int:
        return self.of_snapshot.get(rule, 0) or self.warnings_by_rule.get(rule, 0)

    def row(self) -> dict[str, float | None]:
        """Returns the row that expectations on the summary judge."""
        return {
            **RunSummary.row(self),
            **{rule: self._violations(rule) for rule in self.subject.rejecting},
            "count-mismatch": self._unmatched,
            "accepted_share": self.accepted_share,
            "dangling_share": self.dangling / self.accepted if self.accepted else 0.0,
        }

    def observed(self, column: str) -> str:
        """Describes the value of a column of the row for people."""
        if column == "accepted_share":
            return f"{self.accepted:,} of {self._requested:,} structures ({self.accepted_share:.2%})"
        if column == "dangling_share":
            return f"{self.dangling:,} of {self.accepted:,} structures"
        if column == "count-mismatch":
            return "not known" if self._unmatched is None else f"{self._unmatched:,} too many or too few"
        return RunSummary.observed(self, column)
