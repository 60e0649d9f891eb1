"""The topics of Kafka that a publication has sent to, by Kafka's own ids, and those of them that were removed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from contexture.storage.documents import StoredDocument, Versioned


class KnownTopics(Versioned):
    """Topics as they were when records were sent to them.

    Attributes:
        cluster: id of the Kafka cluster; another one has other topics.
        ids: Kafka's ids by the names of the topics.
    """

    format: int = 1
    cluster: str | None
    ids: Mapping[str, str] = {}


_NAMED: Final = 20
_IN_A_SENTENCE: Final = 3


class LostTopics(StoredDocument):
    """Topics that were removed, or removed and made again, since records were sent to them.

    Attributes:
        noticed_at: when the last of them was noticed.
        topics: their names in order, the first 20.
        count: how many they are.
    """

    noticed_at: datetime
    topics: tuple[str, ...]
    count: int

    @property
    def sentence(self) -> str:
        """Returns what happened, in one text."""
        shown = ", ".join(self.topics[:_IN_A_SENTENCE])
        rest = self.count - min(self.count, _IN_A_SENTENCE)
        named = f"{shown} and {rest} more were" if rest else f"{shown} was" if self.count == 1 else f"{shown} were"
        return f"{named} removed from Kafka, noticed at {self.noticed_at:%Y-%m-%d %H:%M:%S} UTC"


def lost_topics(names: Iterable[str], at: datetime, before: LostTopics | None = None) -> LostTopics:
    """Returns these topics as lost, with those that no full run has filled since they were noticed.

    Args:
        names: of the topics, at least one.
        at: when they were noticed.
        before: those noticed earlier.
    """
    all_names = {*names, *(before.topics if before else ())}
    # Of earlier ones beyond the first 20 the names are not stored, and they may be among the new ones.
    count = max(len(all_names), before.count if before else 0)
    return LostTopics(noticed_at=at, topics=tuple(sorted(all_names)[:_NAMED]), count=count)


def held_topics(pieces: Iterable[Any], among: Collection[str] | None = None) -> set[str]:
    """Returns the topics that state says hold something.

    Args:
        pieces: tables of the columns `topics` and `withheld` of state; what is withheld is in no topic.
        among: only these; all of them when None.
    """
    wanted = None if among is None else pa.array(sorted(among), pa.string())
    found: set[str] = set()
    for piece in pieces:
        rows = piece.filter(pc.invert(piece.column("withheld")))
        names = pc.unique(pc.list_flatten(rows.column("topics")))
        if wanted is not None:
            names = names.filter(pc.is_in(names, value_set=wanted))
        found.update(names.to_pylist())
    return found
