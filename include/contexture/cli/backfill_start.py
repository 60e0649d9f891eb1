"""Finding what a backfill is of, and asking Airflow for it."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import ValidationError

from contexture.cli import home
from contexture.cli.airflow import Airflow
from contexture.cli.airflow_access import AirflowAccess
from contexture.cli.backfill_plan import BackfillPlan, plan_backfill
from contexture.cli.named_publication import named_publication
from contexture.errors import ConfigurationError
from contexture.storage.orders import ReplayOptions


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
    return plan_backfill(home.open_home(), publication, first, last, options, now=datetime.now(UTC))


def start(plan: BackfillPlan, airflow: Airflow | None = None) -> tuple[BackfillPlan, int | None]:
    """Asks Airflow for the backfill, unless it would leave an interval out.

    Args:
        plan: what is to be run.
        airflow: for tests; by default the one that the environment names.

    Returns:
        the plan, with each interval whose own run has not ended told as `running`, and the backfill's id if none is.

    Raises:
        ConfigurationError: Airflow refuses it, or runs another one of this DAG.
        RetriableError: Airflow did not answer.
    """
    airflow = airflow or Airflow(AirflowAccess.from_environment())
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
