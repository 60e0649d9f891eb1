"""A few of those that rules warned of: they are published, so that no quarantine tells who they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow.dataset as ds

from contexture.storage.quarantine import SAMPLES, Sample, identity_text

ENTITY: Final = ("service_path", "id", "type")
STRUCTURE: Final = ("urn", "kind")

_LOOKED_AT: Final = 100_000


def warned(rows: Any, counts: Mapping[str, int], named: Sequence[str]) -> dict[str, tuple[Sample, ...]]:
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
    return {rule: tuple(Sample(identity=who) for who in names) for rule, names in found.items() if names}


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
