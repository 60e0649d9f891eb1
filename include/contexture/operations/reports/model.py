"""The content of a report: of one run, and of many over time. Its JSON form is documented and has a version."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

from contexture.storage.documents import StoredDocument
from contexture.storage.manifests import ExpectationResult, Mode
from contexture.storage.outboxes import Status
from contexture.storage.quarantine import RuleSample

FORMAT_VERSION: Final = 1
"""Of the JSON form: it grows when a member is renamed, removed or means something else; not when one is added."""


class ExpectationOutcome(ExpectationResult):
    """An expectation with what was observed; `examples`: a few of the rows that broke it."""

    examples: tuple[str, ...] = ()


class RuleResult(StoredDocument):
    """How often a rule was broken in a run: `error` refused, `warning` was let pass."""

    rule: str
    severity: Literal["error", "warning"]
    count: int
    samples: tuple[RuleSample, ...] = ()


class NewType(StoredDocument):
    """An attribute had a type that no earlier run saw; `before`: those that were seen."""

    entity_type: str
    attribute: str
    type: str
    before: tuple[str, ...]


class RunReport(StoredDocument):
    """What one run read, refused and judged.

    Attributes:
        run: what the files call the run; `run_id`: what Airflow does, None where the tables don't show.
        status: what became of its outbox.
        dead_letters: records that can never be sent, and went to the dead-letter topic; 0 until it is concluded.
        in_source: how many entities or structures the source said it holds; None where the run could not know.
        in_source_change: against the last run before it that knew, as a share (-0.5: half is gone).
        attributes: how many attributes of entity types were seen; None of structures, and where types are not judged.
        approved: whether the quality gate let it pass; None when its verdict is no longer kept.
    """

    outbox: str
    sequence: int
    run: str
    run_id: str | None
    mode: Mode
    status: Status
    prepared_at: datetime
    received_from: datetime | None
    received_to: datetime | None
    in_source: int | None
    in_source_change: float | None
    read: int
    accepted: int
    unchanged: int
    repeated: int
    quarantined: int
    upserts: int
    deletes: int
    records: int
    bytes: int
    topics: int
    dead_letters: int = 0
    attributes: int | None
    new_types: tuple[NewType, ...]
    approved: bool | None
    expectations: tuple[ExpectationOutcome, ...]
    rules: tuple[RuleResult, ...]

    @property
    def failures(self) -> tuple[ExpectationOutcome, ...]:
        """The expectations that do not hold, the critical ones first."""
        failed = (each for each in self.expectations if not each.success)
        return tuple(sorted(failed, key=lambda each: ("critical", "warning", "info").index(each.severity)))

    @property
    def warnings(self) -> int:
        """How often rules were broken that refuse nothing."""
        return sum(each.count for each in self.rules if each.severity == "warning")


class RuleOverTime(StoredDocument):
    """How often a rule was broken in all runs of a report, and when last."""

    rule: str
    severity: Literal["error", "warning"]
    runs: int
    count: int
    last_at: datetime


class ExpectationOverTime(StoredDocument):
    """How often an expectation was judged and failed; `observed`: what the last of these runs saw."""

    name: str
    severity: str
    on: str
    description: str
    judged: int
    failed: int
    last_failed_at: datetime | None
    observed: str


class StoppedRun(StoredDocument):
    """A run that failed before or after it had an outbox, as the operational tables show it."""

    run_id: str
    started_at: datetime
    failed_task: str | None
    message: str | None


class ReportPeriod(StoredDocument):
    """Which runs a report is about: the `last` so many, of those between two times, or one (`run`)."""

    since: datetime | None = None
    until: datetime | None = None
    last: int | None = None
    run: str | None = None


class ReportVerdict(StoredDocument):
    """Whether the latest run of a report passed, and what changed since the last run of the same mode before it.

    Attributes:
        outcome: `unknown` where the verdict is no longer stored.
        sequence: of the run.
        sentence: the outcome and its reason, for people.
        compared_with: the sequence of the run before; None where none is stored.
        changes: this run minus the run before, by members of `RunReport`; empty where none is stored.
        new_failures: expectations that fail and did not fail before; None where one of both was not judged.
        fixed: expectations that failed before and hold now; None where one of both was not judged.
        failed_later: runs that began later and failed.
    """

    outcome: Literal["passed", "failed", "unknown"]
    sequence: int
    sentence: str
    compared_with: int | None
    changes: Mapping[str, int]
    new_failures: tuple[str, ...] | None
    fixed: tuple[str, ...] | None
    failed_later: int


Dimension = Literal["completeness", "validity", "uniqueness", "timeliness", "volume"]


class DimensionScore(StoredDocument):
    """How many checks of one dimension a run passed, all with the same weight.

    Attributes:
        percent: 0 to 100; None where no check belongs to the dimension.
        checks: the rules and expectations that the run was checked by.
        failed: the names of those that it broke.
    """

    dimension: Dimension
    percent: float | None
    passed: int
    checks: int
    failed: tuple[str, ...]


class QualityReport(StoredDocument):
    """The report of a publication.

    Attributes:
        verdict: on the latest run; None where no run is stored.
        scores: of the latest run, in each dimension; empty where no run is stored.
        many: what its source holds: entities, structures, or events of Contexture itself.
        runs: the oldest first.
        totals: sums over the runs, by the members of `RunReport` that they are of.
        tables_problem: why the operational tables show nothing, if something is wrong.
    """

    format_version: int = FORMAT_VERSION
    publication: str
    description: str
    many: Literal["entities", "structures", "events"]
    made_at: datetime
    period: ReportPeriod
    verdict: ReportVerdict | None = None
    scores: tuple[DimensionScore, ...] = ()
    totals: Mapping[str, int]
    runs: tuple[RunReport, ...]
    rules: tuple[RuleOverTime, ...]
    expectations: tuple[ExpectationOverTime, ...]
    stopped: tuple[StoppedRun, ...]
    tables_problem: str | None = None
