"""Finding what a backfill is of, and asking Airflow for it."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import ValidationError

from contexture.cli import home
from contexture.cli.airflow import Airflow, AirflowAccess
from contexture.cli.backfill_plan import BackfillPlan, plan_backfill
from contexture.cli.named_publication import named_publication
from contexture.errors import ConfigurationError
from contexture.outbox.orders import ReplayOptions


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


def start(plan: BackfillPlan) -> int:
    """Asks Airflow for the backfill; gives its id.

    Raises:
        ConfigurationError: Airflow refuses it, or runs another one of this DAG.
        RetriableError: Airflow did not answer.
    """
    airflow = Airflow(AirflowAccess.from_environment())
    options = plan.options
    conf = {
        "replay_from": options.replay_from,
        "replay_incomplete": options.incomplete,
        "replay_outdated": options.outdated,
        "topic_prefix": options.topic_prefix or None,
    }
    return airflow.backfill(f"publish_{plan.publication}", plan.intervals[0].start, plan.intervals[-1].start, conf)
