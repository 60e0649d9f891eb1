"""What came of all runs: a table by scenario, one by moment, and a document for scripts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from tools.faults.moments import INSIDE, MOMENTS
from tools.faults.trial import Outcome

COLUMNS = (
    *("scenario", "runs", "lost", "doubled", "reordered", "strange", "torn", "scattered", "vanished"),
    *("cuts", "kills", "inside", "disturbed", "problems"),
)


def by_scenario(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Returns a row for each scenario, and the sum of all."""
    names = list(dict.fromkeys(outcome.cell.scenario for outcome in outcomes))
    rows = [_row(name, [each for each in outcomes if each.cell.scenario == name]) for name in names]
    return [*rows, _row("all", outcomes)]


def kills_by_moment(outcomes: Iterable[Outcome]) -> Counter[str]:
    """Counts kills by the moment that the killed sender reported last."""
    kills: Counter[str] = Counter()
    for outcome in outcomes:
        kills.update({str(moment): count for moment, count in outcome.kills.items()})
    return kills


def tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """For rich."""
    rows = by_scenario(outcomes)
    scenarios = Table(*COLUMNS, title="what a read-committed reader found, and kills")
    for row in rows:
        scenarios.add_row(*row, end_section=row is rows[-2])
    moments = Table("last moment", "kills", "runs", title="moments")
    kills = kills_by_moment(outcomes)
    for moment in MOMENTS:
        runs = sum(outcome.cell.moment is moment for outcome in outcomes)
        moments.add_row(f"{moment}{' (inside)' if moment in INSIDE else ''}", str(kills[moment]), str(runs))
    return [scenarios, moments]


def disturbances(outcomes: Iterable[Outcome]) -> list[str]:
    """Returns a line for each run that something from outside disturbed: it found nothing wrong, and shows less."""
    return [f"{_named(outcome)}: {outcome.disturbed}" for outcome in outcomes if outcome.disturbed]


def complaints(outcomes: Iterable[Outcome]) -> list[str]:
    """Returns a line for each run that was not clean, with what repeats it."""
    return [
        f"{_named(outcome)}: "
        f"{'; '.join([*outcome.problems, *([] if outcome.verdict.is_clean else [str(outcome.verdict)])])}"
        for outcome in outcomes
        if not outcome.is_clean
    ]


def write_json(file: Path, outcomes: Sequence[Outcome], seed: int, seconds: float) -> None:
    """All runs."""
    document = {
        "seed": seed,
        "seconds": round(seconds, 1),
        "runs": len(outcomes),
        "kills": dict(kills_by_moment(outcomes)),
        "kills_inside": sum(outcome.kills_inside for outcome in outcomes),
        "scenarios": [dict(zip(COLUMNS, row, strict=True)) for row in by_scenario(outcomes)],
        "outcomes": [
            {
                **{name: getattr(outcome.cell, name) for name in ("number", "scenario", "moment")},
                **asdict(outcome.verdict),
                "kills": dict(outcome.kills),
                "problems": list(outcome.problems),
                "disturbed": outcome.disturbed,
                "cuts": outcome.cuts,
                "seconds": round(outcome.seconds, 2),
            }
            for outcome in outcomes
        ],
    }
    file.write_text(json.dumps(document, indent=1) + "\n")


def _named(outcome: Outcome) -> str:
    cell = outcome.cell
    return f"run {cell.number} ({cell.scenario}, {cell.moment}; seed {cell.seed})"


def _row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    verdicts = [outcome.verdict for outcome in outcomes]
    figures = (
        len(outcomes),
        sum(verdict.lost for verdict in verdicts),
        sum(verdict.doubled for verdict in verdicts),
        sum(verdict.reordered for verdict in verdicts),
        sum(verdict.strange for verdict in verdicts),
        sum(verdict.torn for verdict in verdicts),
        sum(verdict.scattered for verdict in verdicts),
        sum(verdict.vanished for verdict in verdicts),
        sum(outcome.cuts for outcome in outcomes),
        sum(sum(outcome.kills.values()) for outcome in outcomes),
        sum(outcome.kills_inside for outcome in outcomes),
        sum(bool(outcome.disturbed) for outcome in outcomes),
        sum(len(outcome.problems) for outcome in outcomes),
    )
    return (name, *map(str, figures))
