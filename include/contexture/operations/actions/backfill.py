"""Backfills: what an interval can be sent again from, and the request to Airflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from pydantic import ValidationError

from contexture.errors import ConfigurationError
from contexture.operations import environment
from contexture.operations.airflow_client import AirflowClient, AirflowCredentials
from contexture.operations.environment import named_publication
from contexture.publications import Publication
from contexture.publications.schedule import intervals
from contexture.storage.archive import ArchiveCoverage
from contexture.storage.documents import StoredDocument
from contexture.storage.manifests import Manifest
from contexture.storage.orders import ReplayOptions
from contexture.storage.publication_store import PublicationStore

Outcome = Literal["archive", "source", "partial_archive", "refused", "nothing", "not_finished", "running"]


class PlannedInterval(StoredDocument):
    """What is known of one interval.

    Attributes:
        start, end: of the interval, its end excluded.
        outcome: where it would come from: the archive, what the source keeps, what is left of the archive; or that it
            would be refused, that there is nothing, that it has not ended yet, or that its own run has not: Airflow
            leaves such intervals out.
        runs: archived runs.
        records: of these; on a replica as many at most.
        topics: records by topic, as they would be named.
        missing: what is known to lack.
    """

    start: datetime
    end: datetime
    outcome: Outcome
    runs: int
    records: int
    topics: Mapping[str, int]
    missing: tuple[str, ...]


class BackfillPlan(StoredDocument):
    """What a backfill would do; `replica`: what the target holds newer is left out, or overwritten."""

    publication: str
    replica: bool
    options: ReplayOptions
    intervals: tuple[PlannedInterval, ...]

    @property
    def sends_all(self) -> bool:
        """Whether no interval is refused, half or empty, as far as can be seen from here."""
        return bool(self.intervals) and all(each.outcome in {"archive", "source"} for each in self.intervals)

    @property
    def can_start(self) -> bool:
        """Whether every interval would be run, as far as can be seen from here."""
        return not any(each.outcome in {"refused", "nothing", "not_finished", "running"} for each in self.intervals)

    @property
    def overwrites(self) -> bool:
        """Whether old values would come to lie on top of newer ones."""
        return self.replica and self.options.sends_outdated and not self.options.topic_prefix


def plan_backfill(
    store: PublicationStore,
    publication: Publication,
    first: datetime,
    last: datetime,
    options: ReplayOptions,
    *,
    now: datetime,
) -> BackfillPlan:
    """What a backfill of a range would send.

    Args:
        store: of the publication.
        publication: whose backfill.
        first, last: starts of the first and the last interval.
        options: how it is sent.
        now: an interval that ends later is not finished.

    Raises:
        ConfigurationError: the publication has no schedule, or the range no interval.
    """
    if publication.schedule is None:
        raise ConfigurationError(
            f"publication {publication.name} has no schedule, so it has no intervals", next_step="give it a schedule"
        )
    found = list(intervals(publication.schedule, first.astimezone(UTC), last.astimezone(UTC)))
    if not found:
        raise ConfigurationError(
            f"no interval of {publication.name} ({publication.schedule}) starts between {first} and {last}",
            next_step="give --from and --to as starts of intervals, both included",
        )
    planned = tuple(
        _planned(store, publication, interval, options) if interval[1] <= now else _not_finished(interval)
        for interval in found
    )
    return BackfillPlan(
        publication=publication.name,
        replica=publication.topics.keep == "latest",
        options=options,
        intervals=planned,
    )


def _planned(
    store: PublicationStore, publication: Publication, interval: tuple[datetime, datetime], options: ReplayOptions
) -> PlannedInterval:
    archive = store.archive.coverage(interval)
    outcome = _outcome(archive, options, asks=publication.source.keeps_history)
    is_archived = outcome in {"archive", "partial_archive"}
    topics = _topics(store, archive.manifests, options.topic_prefix) if is_archived else {}
    return PlannedInterval(
        start=interval[0],
        end=interval[1],
        outcome=outcome,
        runs=len(archive.manifests),
        records=sum(topics.values()),
        topics=topics,
        missing=archive.missing,
    )


def _not_finished(interval: tuple[datetime, datetime]) -> PlannedInterval:
    return PlannedInterval(
        start=interval[0], end=interval[1], outcome="not_finished", runs=0, records=0, topics={}, missing=()
    )


def _outcome(archive: ArchiveCoverage, options: ReplayOptions, *, asks: bool) -> Outcome:
    if options.replay_from == "source":
        return "source" if asks else "refused"
    if archive.is_complete:
        return "archive"
    if options.replay_from == "auto" and asks:
        return "source"
    if not archive.manifests:
        return "nothing"
    return "partial_archive" if options.incomplete == "send" else "refused"


def _topics(store: PublicationStore, manifests: tuple[Manifest, ...], prefix: str) -> dict[str, int]:
    found = Counter[str]()
    for manifest in manifests:
        for topic, records in store.outbox(manifest.outbox).topic_counts().items():
            found[f"{prefix}{topic}"] += records
    return dict(sorted(found.items()))


def options_of(replay_from: str, incomplete: str, outdated: str, topic_prefix: str) -> ReplayOptions:
    """How intervals are sent again.

    Raises:
        ConfigurationError: the prefix can't begin the name of a topic.
    """
    given = {"replay_from": replay_from, "incomplete": incomplete, "outdated": outdated, "topic_prefix": topic_prefix}
    try:
        return ReplayOptions.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError(
            f"no topic can begin with {topic_prefix!r}",
            next_step="give --topic-prefix up to 100 letters, digits, dots, underscores and hyphens",
        ) from error


def planned(name: str, first: datetime, last: datetime, options: ReplayOptions) -> BackfillPlan:
    """What a backfill of a publication would send.

    Raises:
        ConfigurationError: there is no such publication, it has no schedule, or the range no interval.
    """
    publication = named_publication(name, None)
    store = environment.open_home().publication(publication.name)
    return plan_backfill(store, publication, first, last, options, now=datetime.now(UTC))


def start(plan: BackfillPlan, airflow: AirflowClient | None = None) -> tuple[BackfillPlan, int | None]:
    """Asks Airflow for the backfill, unless it would leave an interval out.

    Args:
        plan: what is to be run.
        airflow: for tests; by default the one that the environment names.

    Returns:
        the plan, with intervals whose own run has not ended as `running`, and the backfill's id if none is.

    Raises:
        ConfigurationError: Airflow refuses it, or runs another one of this DAG.
        RetriableError: Airflow did not answer.
    """
    airflow = airflow or AirflowClient(AirflowCredentials.from_environment())
    asked = (f"publish_{plan.publication}", plan.intervals[0].start, plan.intervals[-1].start, _conf(plan.options))
    known = _without_running(plan, airflow.backfilled(*asked))
    return known, airflow.backfill(*asked) if known.can_start else None


def _without_running(plan: BackfillPlan, backfilled: set[datetime]) -> BackfillPlan:
    intervals = tuple(
        each if each.start in backfilled else each.model_copy(update={"outcome": "running"}) for each in plan.intervals
    )
    return plan.model_copy(update={"intervals": intervals})


def _conf(options: ReplayOptions) -> dict[str, object]:
    return {
        "replay_from": options.replay_from,
        "replay_incomplete": options.incomplete,
        "replay_outdated": options.outdated,
        "topic_prefix": options.topic_prefix or None,
    }
