"""How `contexture backfill` shows what it would do, or has started: for people, and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from contexture.operations.actions.backfill import BackfillPlan, PlannedInterval

_TOPICS_SHOWN = 10


def print_json(plan: BackfillPlan, started: int | None) -> None:
    """One JSON document."""
    document = {**plan.model_dump(mode="json"), "overwrites": plan.overwrites, "backfill": started}
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_text(plan: BackfillPlan, started: int | None) -> None:
    """A line for each interval, with its topics and what is missing below it."""
    for line in _lines(plan):
        print(line)
    if started is not None:
        print(f"started: backfill {started} of publish_{plan.publication}")


def _lines(plan: BackfillPlan) -> Iterator[str]:
    for each in plan.intervals:
        yield f"{each.start:%Y-%m-%d %H:%M} to {each.end:%Y-%m-%d %H:%M}: {_told(each)}"
        for topic, records in list(each.topics.items())[:_TOPICS_SHOWN]:
            yield f"  {topic}: {records}"
        if len(each.topics) > _TOPICS_SHOWN:
            yield f"  and {len(each.topics) - _TOPICS_SHOWN} more topics (--json lists them)"
        for missing in each.missing:
            yield f"  missing: {missing}"
    if plan.overwrites:
        yield "warning: old values will come to lie on top of newer ones on compacted topics"
    elif plan.replica and not plan.options.sends_outdated:
        yield "on compacted topics, what the target holds newer is left out: fewer records than these may be sent"


def _told(each: PlannedInterval) -> str:
    match each.outcome:
        case "archive" | "part of the archive":
            return f"{each.outcome}, {each.runs} runs, {each.records} records"
        case "source":
            return "asked of the source, which is told when it runs"
        case "refused":
            return "refused, for it can't be sent whole"
        case "nothing":
            return "nothing of it is archived"
        case "not over":
            return "not over yet, and Airflow leaves it out"
        case "running":
            return "its run has not ended, and Airflow leaves it out: wait for that, then start the backfill again"
