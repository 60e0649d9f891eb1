"""How `contexture topics plan` and `apply` show what they found: for people, and for scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from contexture.kafka.topics import TopicChange
from contexture.operations.actions.topic_plan import Planned

_SHOWN = 20


def print_json(planned: Sequence[Planned]) -> None:
    """One JSON document with everything."""
    document = [
        {
            "connection": each.connection,
            "missing": each.plan.missing,
            "alike": each.plan.alike,
            "changes": [_as_json(change, each.made) for change in each.plan.changes],
        }
        for each in planned
    ]
    typer.echo(json.dumps({"connections": document}, ensure_ascii=False, indent=2))


def print_text(planned: Sequence[Planned]) -> None:
    """Each connection with its counts, and a line for each difference."""
    for each in planned:
        plan = each.plan
        differ = len({change.drift.topic for change in plan.changes})
        typer.echo(f"{each.connection}: {plan.alike} topics are as they should be, {differ} differ")
        if plan.missing:
            more = f" and {len(plan.missing) - _SHOWN} more" if len(plan.missing) > _SHOWN else ""
            names = f"{', '.join(plan.missing[:_SHOWN])}{more}"
            typer.echo(f"  not there, made by the next run that sends to them: {names}")
        for change in plan.changes:
            typer.echo(f"  {change.drift}")
            typer.echo(f"    {_what_of_it(change, each.made)}")


def _what_of_it(change: TopicChange, made: tuple[TopicChange, ...] | None) -> str:
    return "changed" if made is not None and change in made else f"next: {change.advice}"


def _as_json(change: TopicChange, made: tuple[TopicChange, ...] | None) -> dict[str, object]:
    return {
        "topic": change.drift.topic,
        "setting": change.drift.setting,
        "wanted": change.drift.wanted,
        "found": change.drift.found,
        "way": change.way.value,
        "advice": change.advice,
        "changed": made is not None and change in made,
    }
