"""Records in topics that no read-committed reader sees: those behind the last stable offset.

Most belong to a transaction that is open. Some belong to none any more: a coordinator that settles a
transaction while one of its partitions has no leader leaves the marker of that partition out (Kafka 4.3.1: "these
partitions are likely deleted already and hence can be skipped"). They are neither committed nor aborted, hold back
every reader of the partition, and share the fate of the next transaction that their producer has there.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from contexture.errors import RetriableError
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.broker_wait import BrokerWait
from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.interfaces import Place
from contexture.kafka.reader import TopicRecord, read_places
from contexture.kafka.settings import ClientSettings
from contexture.sending.interfaces import HiddenPort, OffsetSpan, RecordCopy
from contexture.sending.shard_records import Fingerprint, fingerprint

_LOG: Final = logging.getLogger(__name__)
_LISTED_SINGLY: Final = 20
# A shard's transaction has at most some 50,000; what lies there beyond is another one's.
_MOST_RECORDS: Final = 500_000
LOOK_AGAIN_SECONDS: Final = 0.5
"""Between two looks at partitions that hide something."""
# Records carry the time of the client that sent them; another one's clock may be behind.
_CLOCKS_DIFFER: Final = timedelta(minutes=10)


class OpenTransactions:
    """Reads behind the last stable offset, for which the connection's user needs READ on a topic."""

    def __init__(self, settings: ClientSettings, broker_wait: BrokerWait) -> None:
        self._settings = settings
        self._broker_wait = broker_wait
        self._admin = TopicAdmin(settings, broker_wait)

    def spans(self, topics: Collection[str]) -> dict[Place, OffsetSpan]:
        """Returns of each partition that hides something: where that begins, and its end."""
        places = list(self._places(topics))
        # The end first: what is committed between the two questions is not taken for hidden.
        ends = self._admin.ends(places, committed=False)
        stable = self._admin.ends(places, committed=True)
        return {place: OffsetSpan(stable[place], end) for place, end in ends.items() if stable[place] < end}

    def matching(self, spans: Mapping[Place, OffsetSpan], sought: Mapping[str, set[Fingerprint]]) -> set[Place]:
        """Returns the partitions that hide at least one of the records that are sought, by topic."""
        found: set[Place] = set()
        for place, span in spans.items():
            if sought.get(place[0]) and self._hides(place, span, sought[place[0]]):
                found.add(place)
        return found

    def firsts(self, spans: Mapping[Place, OffsetSpan]) -> dict[Place, Fingerprint]:
        """Returns the first record that each partition hides: its transaction is undecided for certain.

        Those behind it may be of transactions that are decided, and wait for this one. A partition that this user may
        not read is left out.
        """
        found: dict[Place, Fingerprint] = {}
        for place, span in spans.items():
            record = next(self._behind(place, span), None)
            if record is not None:
                found[place] = fingerprint(record.key, record.value)
        return found

    def moved(self, topics: Collection[str], since: datetime | None) -> dict[Place, OffsetSpan]:
        """The partitions of topics that have had another leader since a time: where that time begins, and the end.

        A marker is left out only where a partition has no leader for a moment, and then it gets another leader, or the
        same one with a new epoch.

        Args:
            topics: their names.
            since: None where it is not known: then the newest 500,000 records of every partition are given.
        """
        places = list(self._places(topics))
        ends = self._admin.ends(places, committed=False)
        if since is None:
            firsts = self._admin.beginnings(places)
            return {place: OffsetSpan(max(firsts[place], end - _MOST_RECORDS), end) for place, end in ends.items()}
        begins = self._admin.first_since(places, since - _CLOCKS_DIFFER)
        return {
            place: OffsetSpan(first, ends[place]) for place, (first, is_led_alike) in begins.items() if not is_led_alike
        }

    def copies(self, spans: Mapping[Place, OffsetSpan]) -> Iterator[RecordCopy]:
        """All records between two offsets of each partition, and whether readers see them; in each partition's order.

        Aborted ones are among them, as long as the partition is not cleaned.
        """
        starts, ends = ({place: span[side] for place, span in spans.items()} for side in (0, 1))
        seen: defaultdict[Place, set[int]] = defaultdict(set)
        for record in read_places(self._settings, self._broker_wait, starts, ends):
            seen[record.topic, record.partition].add(record.offset)
        read = read_places(self._settings, self._broker_wait, starts, ends, isolation="read_uncommitted")
        for record in read:
            yield RecordCopy(record, record.offset in seen[record.topic, record.partition])

    def is_committed(
        self,
        sought: Mapping[str, set[Fingerprint]],
        are_own: Callable[[Mapping[Place, Fingerprint]], bool],
        since: datetime | None,
        longest_open_seconds: float,
    ) -> bool:
        """Returns whether the last thing that became of these records, by topic, is that readers see them.

        A transaction is decided as a whole: where a partition can't show it yet, the others do. False where a record is
        not found among the last of its topic, or where nothing shows what was decided.

        Args:
            sought: the records.
            are_own: whether the first records that partitions hide are of the sender that asks.
            since: when their sending began: a partition that has had another leader since then may have lost them.
                None where that is no excuse.
            longest_open_seconds: for how long another sender's transaction can hide them.
        """
        places = list(self._places(sought))
        ends = self._admin.ends(places, committed=False)
        newest = self._newest(sought, places, ends)
        if len(newest) < sum(map(len, sought.values())):
            return False
        stable = self._stable(newest.values(), ends, are_own, longest_open_seconds)
        decided = {(place, offset) for place, offset in newest.values() if offset < stable[place]}
        starts: dict[Place, int] = {}
        for place, offset in decided:
            starts[place] = min(offset, starts.get(place, offset))
        seen = read_places(self._settings, self._broker_wait, starts, {place: stable[place] for place in starts})
        unseen = decided - {((record.topic, record.partition), record.offset) for record in seen}
        if not unseen or unseen == decided or since is None:
            return bool(decided) and not unseen
        moved = self.moved({topic for (topic, _), _ in unseen}, since)
        return all(place in moved for place, _ in unseen)

    def _stable(
        self,
        newest: Collection[tuple[Place, int]],
        ends: Mapping[Place, int],
        are_own: Callable[[Mapping[Place, Fingerprint]], bool],
        longest_open_seconds: float,
    ) -> dict[Place, int]:
        """Up to where the fate of every record is known, once no other sender's transaction hides what is sought."""
        places, started = sorted({place for place, _ in newest}), self._broker_wait.now()
        while True:
            stable = self._admin.ends(places, committed=True)
            hiding = {
                place: OffsetSpan(stable[place], ends[place]) for place, offset in newest if offset >= stable[place]
            }
            if not hiding or are_own(self.firsts(hiding)):
                return stable
            if self._broker_wait.now() - started >= longest_open_seconds:
                raise hidden_records_error(len(hiding), *min(hiding))
            time.sleep(LOOK_AGAIN_SECONDS)

    def _newest(
        self, sought: Mapping[str, set[Fingerprint]], places: Collection[Place], ends: Mapping[Place, int]
    ) -> dict[tuple[str, Fingerprint], tuple[Place, int]]:
        """Returns where the newest copy of each record is, committed or not."""
        firsts = self._admin.beginnings(list(places))
        starts = {place: max(firsts[place], ends[place] - _MOST_RECORDS) for place in places}
        starts = {place: start for place, start in starts.items() if start < ends[place]}
        read = read_places(
            self._settings,
            self._broker_wait,
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
            # The sending itself reports a topic that is not there.
            for partition in range(listed[name].partitions if name in listed else 0):
                yield name, partition

    def _hides(self, place: Place, span: OffsetSpan, sought: set[Fingerprint]) -> bool:
        start, end = span
        if end - start > _MOST_RECORDS:
            _LOG.warning("%s[%d] hides %d records behind an open transaction: they are not read", *place, end - start)
            return False
        return any(fingerprint(record.key, record.value) in sought for record in self._behind(place, span))

    def _behind(self, place: Place, span: OffsetSpan) -> Iterator[TopicRecord]:
        start, end = span
        try:
            yield from read_places(
                self._settings, self._broker_wait, {place: start}, {place: end}, isolation="read_uncommitted"
            )
        except KafkaConfigurationError as refused:
            _LOG.warning(
                "%s[%d] hides records behind an open transaction, and this user may not read them (%s): "
                "allow READ on the topic",
                *place,
                refused.message,
            )


def places_until(hidden: HiddenPort, ends: Mapping[Place, int]) -> dict[Place, OffsetSpan]:
    """Returns what the partitions hide yet up to these ends."""
    spans = hidden.spans({topic for topic, _ in ends})
    return {
        place: OffsetSpan(spans[place].start, end)
        for place, end in ends.items()
        if place in spans and spans[place].start < end
    }


def hidden_records_error(partitions: int, topic: str, partition: int) -> RetriableError:
    """Returns the error for records that a transaction before them hides for longer than any may be open."""
    return RetriableError(
        f"readers do not see the records that were sent to {partitions} partitions, the first is "
        f"{topic}[{partition}]: a transaction before them was neither committed nor aborted",
        next_step="search the brokers' logs for a transaction that hangs there, clear the task, and run contexture "
        "verify when readers continue: it reports whether something is missing",
    )
