"""Records that stand in topics and that no read-committed reader sees: those behind the last stable offset.

Most belong to a transaction that somebody has open. Some belong to none any more: a coordinator that settles a
transaction while one of its partitions has no leader leaves the marker of that partition out (Kafka 4.3.1: "these
partitions are likely deleted already and hence can be skipped"). They are neither committed nor aborted, hold back
every reader of the partition, and share the fate of the next transaction that their producer has there.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Final

from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.patience import Patience
from contexture.kafka.replica import read_places
from contexture.kafka.settings import ClientSettings
from contexture.kafka.starts import Place
from contexture.kafka.topic_admin import TopicAdmin

Fingerprint = tuple[bytes | None, bytes | None]
"""A record's key, and a digest of its value."""

_LOG: Final = logging.getLogger(__name__)
_LISTED_SINGLY: Final = 20
# A shard's transaction has at most some 50,000; what lies there beyond is somebody else's.
_MOST_RECORDS: Final = 500_000


def fingerprint(key: bytes | None, value: bytes | None) -> Fingerprint:
    """What tells a record from others of its topic."""
    return key, None if value is None else blake2b(value, digest_size=16).digest()


class HiddenRecords:
    """Looks behind the last stable offset.

    Args:
        settings: the connection; its user needs READ on a topic to look there.
        patience: how long brokers are waited for.
    """

    def __init__(self, settings: ClientSettings, patience: Patience) -> None:
        self._settings = settings
        self._patience = patience
        self._admin = TopicAdmin(settings, patience)

    def spans(self, topics: Collection[str]) -> dict[Place, tuple[int, int]]:
        """Of each partition that hides something: where that begins, and its end."""
        places = list(self._places(topics))
        # The end first: what is committed between the two questions is not taken for hidden.
        ends = self._admin.ends(places, committed=False)
        stable = self._admin.ends(places, committed=True)
        return {place: (stable[place], end) for place, end in ends.items() if stable[place] < end}

    def matching(self, spans: Mapping[Place, tuple[int, int]], sought: Mapping[str, set[Fingerprint]]) -> set[Place]:
        """The partitions that hide at least one of the records that are sought, by topic."""
        found: set[Place] = set()
        for place, span in spans.items():
            if sought.get(place[0]) and self._hides(place, span, sought[place[0]]):
                found.add(place)
        return found

    def is_committed(self, sought: Mapping[str, set[Fingerprint]]) -> bool:
        """Whether the last thing that became of these records, by topic, is that readers see them.

        A transaction is decided as a whole: where a partition can't show it yet, the others do. False where a record is
        not found among the last of its topic, or where nothing shows what was decided.
        """
        places = list(self._places(sought))
        ends = self._admin.ends(places, committed=False)
        newest = self._newest(sought, places, ends)
        if len(newest) < sum(map(len, sought.values())):
            return False
        stable = self._admin.ends(sorted({place for place, _ in newest.values()}), committed=True)
        decided = {(place, offset) for place, offset in newest.values() if offset < stable[place]}
        starts: dict[Place, int] = {}
        for place, offset in decided:
            starts[place] = min(offset, starts.get(place, offset))
        seen = read_places(self._settings, self._patience, starts, {place: stable[place] for place in starts})
        return bool(decided) and decided <= {((record.topic, record.partition), record.offset) for record in seen}

    def _newest(
        self, sought: Mapping[str, set[Fingerprint]], places: Collection[Place], ends: Mapping[Place, int]
    ) -> dict[tuple[str, Fingerprint], tuple[Place, int]]:
        """Where the newest copy of each record is, committed or not."""
        firsts = self._admin.beginnings(list(places))
        starts = {place: max(firsts[place], ends[place] - _MOST_RECORDS) for place in places}
        starts = {place: start for place, start in starts.items() if start < ends[place]}
        read = read_places(
            self._settings,
            self._patience,
            starts,
            {place: ends[place] for place in starts},
            isolation="read_uncommitted",
        )
        found: dict[tuple[str, Fingerprint], tuple[Place, int]] = {}
        for record in read:
            sign = fingerprint(record.key, record.value)
            if sign in sought[record.topic]:
                found[record.topic, sign] = (record.topic, record.partition), record.offset
        return found

    def _places(self, topics: Collection[str]) -> Iterable[Place]:
        if len(topics) > _LISTED_SINGLY:
            listed = self._admin.listed()
        else:
            listed = {name: topic for each in topics for name, topic in self._admin.listed(each).items()}
        for name in topics:
            # A topic that is not there is told by the sending itself.
            for partition in range(listed[name].partitions if name in listed else 0):
                yield name, partition

    def _hides(self, place: Place, span: tuple[int, int], sought: set[Fingerprint]) -> bool:
        start, end = span
        if end - start > _MOST_RECORDS:
            _LOG.warning(
                "%s[%d] hides %d records behind an open transaction: they are not looked at", *place, end - start
            )
            return False
        try:
            records = read_places(
                self._settings, self._patience, {place: start}, {place: end}, isolation="read_uncommitted"
            )
            return any(fingerprint(record.key, record.value) in sought for record in records)
        except KafkaConfigurationError as refused:
            _LOG.warning(
                "%s[%d] hides records behind an open transaction, and this user may not look at them (%s): "
                "allow READ on the topic",
                *place,
                refused.message,
            )
            return False
