"""Which events the target has already, as state knows it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from contexture.storage.state import StateLookup
from spark_jobs.preparation.candidates import Candidate
from spark_jobs.preparation.settings import Preparation


class Holding:
    """Asks state once for many events.

    Args:
        preparation: what is prepared.
        lookup: of its state; with times, where what was written again without a change is to be sent.
    """

    def __init__(self, preparation: Preparation, lookup: StateLookup) -> None:
        self._everything = preparation.everything
        self._suppresses = preparation.publication.source.suppress_unchanged
        self._lookup = lookup

    def has(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Whether the target has each of them as it is; where everything is sent, nobody asks."""
        if self._everything or not candidates:
            return [False] * len(candidates)
        identities = pa.array([candidate.identity_hash for candidate in candidates], pa.binary(16))
        entities = pa.array([candidate.entity_hash for candidate in candidates], pa.binary(16))
        if self._suppresses:
            contents = self._lookup.contents(identities, entities)
            return [one.content_hash == held for one, held in zip(candidates, contents, strict=True)]
        held = self._lookup.contents_and_times(identities, entities)
        return [
            one.content_hash == content and not _is_later(one.modified_at, time)
            for one, (content, time) in zip(candidates, held, strict=True)
        ]


def _is_later(time: int | None, held: int | None) -> bool:
    """Whether something was written after what the target has."""
    return time is not None and (held is None or time > held)
