"""Reads of a registry that answers wrongly: no absence is concluded and no change passed over that is none."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from secrets import randbits

import pytest

from builders.structure_reading import landed, read_context, structure_order
from builders.unreliable_registry import UnreliableRegistry
from contexture.errors import RetriableError
from contexture.sources.sdmx.reading.steps import transaction_of
from spark_jobs.structures.read import land

STARTED = datetime(2026, 11, 2, tzinfo=UTC)
PULLS = 200


def anomalies(home: Path, seed: int) -> list[str]:
    """How a pull ended (`complete`, `changes`, `failed`), then what it concluded wrongly.

    That is `false absence` (a structure was there all the while, and the pull deletes it or did not land it), or
    `passed over` (a change up to the new watermark was not landed).
    """
    random = Random(seed)
    registry = UnreliableRegistry(random, has_log=random.random() < 0.7, writes=random.choice((0.0, 0.2)))
    known = random.choice((None, None, random.randint(1, len(registry.log))))
    sent = registry._moments[known] if known is not None else {}
    mode = random.choice(("full", "changes"))
    watermark = None if known is None else str(known) if registry.has_log else f"change {known}"
    reader = read_context(registry, home, sent=sent)
    registry.begin()
    try:
        outcome = land(reader, structure_order(home, mode=mode), watermark, STARTED)
        reader.close()
    except RetriableError:
        return ["failed"]
    last = {row["id"]: row for row in landed(home)}
    upserted = {name: row["body"] for name, row in last.items() if row["operation"] == "upsert"}
    reached = transaction_of(outcome.watermark) if registry.has_log else None
    found = ["complete" if outcome.complete else "changes"]
    # The log is read up to its last landed transaction; the next read lands what comes later.
    there = registry.stayed if reached is None else registry.stayed & registry._moments[reached].keys()
    if there & (last.keys() - upserted.keys()) or (outcome.complete and not there <= upserted.keys()):
        found.append("false absence")
    if reached is not None:
        due = {name for each in registry.log[known or 0 : reached] for name in each.changed} & there
        if not due <= upserted.keys() or any(is_older(upserted[name], registry, name, reached) for name in due):
            found.append("passed over")
    return found


def is_older(body: bytes, registry: UnreliableRegistry, name: str, reached: int) -> bool:
    """Whether what was landed is of before the watermark; each version of a code list has a code of its own."""
    versions = [moment[name] for moment in registry._moments[reached:] if name in moment]
    return not any(f'id="{code}"'.encode() in body for (code,) in versions)


def test_no_absence_and_no_change_is_concluded_wrongly_from_a_registry_that_answers_wrongly(tmp_path: Path) -> None:
    found = Counter[str]()
    wrong: list[tuple[int, list[str]]] = []
    for seed in range(PULLS):
        ended, *anomalous = anomalies(tmp_path / str(seed), seed)
        found.update([ended])
        if anomalous:
            wrong.append((seed, anomalous))
    assert wrong == []
    assert min(found["complete"], found["changes"], found["failed"]) > PULLS // 20, found


@pytest.mark.long
def test_no_pull_of_thousands_concludes_wrongly(tmp_path: Path) -> None:
    first = randbits(32)
    wrong = [seed for seed in range(first, first + 20_000) if anomalies(tmp_path / str(seed), seed)[1:]]
    assert wrong == []
