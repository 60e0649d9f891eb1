"""Where the partitions of topics begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import TYPE_CHECKING

from contexture.kafka.admin_calls import BULK, CALL_SECONDS
from contexture.kafka.clients import client_error, error_in
from contexture.kafka.ports import KafkaErrorLike
from contexture.kafka.topic_listing import VISIBLE_POLL_SECONDS, TopicListing

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec

# For a partition whose leader is lost the client answers -1001 without an error. An offset is 0 or more; that of a time
# may be -1, where no record is as late.
_LEAST_OFFSET = 0
_NOTHING_AS_LATE = -1

# Each listing is answered by any broker, and the one that answers may be the one that is behind.
_LOOKS_FOR_A_PARTITION = 3


class TopicOffsets(TopicListing):
    """Offsets in the topics of a cluster."""

    def ends(self, places: Sequence[tuple[str, int]], *, committed: bool) -> dict[tuple[str, int], int]:
        """The offset after the last record of each partition.

        Args:
            places: topic and partition.
            committed: up to the first open transaction (the last stable offset) instead of the very last record.
        """
        from confluent_kafka.admin import OffsetSpec

        latest: Callable[[], OffsetSpec] = OffsetSpec.latest
        return self._offsets(places, latest(), committed=committed)

    def beginnings(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The offset of the first record of each partition: above 0 where records were removed from its beginning."""
        from confluent_kafka.admin import OffsetSpec

        earliest: Callable[[], OffsetSpec] = OffsetSpec.earliest
        return self._offsets(places, earliest(), committed=False)

    def offsets_at(self, places: Sequence[tuple[str, int]], moment: datetime) -> dict[tuple[str, int], int]:
        """The offset of the first record of that time or later in each partition; its end where there is none."""
        from confluent_kafka.admin import OffsetSpec

        at: Callable[[int], OffsetSpec] = OffsetSpec.for_timestamp
        milliseconds = round(moment.timestamp() * 1000)
        found = self._offsets(places, at(milliseconds), committed=False, least=_NOTHING_AS_LATE)
        later = [place for place, offset in found.items() if offset == _NOTHING_AS_LATE]
        return found | (self.ends(later, committed=False) if later else {})

    def first_since(
        self, places: Sequence[tuple[str, int]], moment: datetime
    ) -> dict[tuple[str, int], tuple[int, bool]]:
        """Where the records of a time or later begin in each partition, and whether it has had one leader since.

        A partition without such records begins at its end, and counts as one that has.
        """
        from confluent_kafka.admin import OffsetSpec

        at: Callable[[int], OffsetSpec] = OffsetSpec.for_timestamp
        latest: Callable[[], OffsetSpec] = OffsetSpec.latest
        first = self._answers(places, at(round(moment.timestamp() * 1000)), committed=False, least=_NOTHING_AS_LATE)
        last = self._answers(places, latest(), committed=False)
        return {
            place: (end.offset, True) if first[place].offset == _NOTHING_AS_LATE else _led(first[place], end)
            for place, end in last.items()
        }

    def _offsets(
        self, places: Sequence[tuple[str, int]], what: OffsetSpec, *, committed: bool, least: int = _LEAST_OFFSET
    ) -> dict[tuple[str, int], int]:
        answers = self._answers(places, what, committed=committed, least=least)
        return {place: int(answer.offset) for place, answer in answers.items()}

    def _answers(
        self, places: Sequence[tuple[str, int]], what: OffsetSpec, *, committed: bool, least: int = _LEAST_OFFSET
    ) -> dict[tuple[str, int], ListOffsetsResultInfo]:
        from confluent_kafka import IsolationLevel, TopicPartition

        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        found: dict[tuple[str, int], ListOffsetsResultInfo] = {}
        waiting, started = list(places), self._patience.now()
        while waiting:
            wanted, before = {TopicPartition(*place): what for place in waiting[:BULK]}, len(found)
            answers = self._client.list_offsets(wanted, isolation_level=level, request_timeout=CALL_SECONDS)
            for place, future in answers.items():
                answer = self._answer(future, place, started, least)
                if answer is not None:
                    found[place.topic, place.partition] = answer
            waiting = [place for place in waiting if place not in found]
            if len(found) == before:
                time.sleep(VISIBLE_POLL_SECONDS)
        return found

    def _answer(
        self, future: Future[ListOffsetsResultInfo], place: TopicPartition, started: float, least: int
    ) -> ListOffsetsResultInfo | None:
        topic, partition = place.topic, place.partition
        try:
            answer = future.result()
        except client_error() as failure:
            error = error_in(failure)
            if not self._is_behind(error, topic, partition):
                self._wait_or_raise(error, "finding offsets in", topic)
                return None
            # Brokers answer all the while, so only the time since the first question counts.
            self._patience.waited_since(started, f"a broker does not know {topic} yet")
            return None
        if answer.offset < least:
            # No answer yet: taken for an offset, a ledger would be read as empty.
            self._patience.waited_since(started, f"{topic}[{partition}] has no leader that says where it ends")
            return None
        self._patience.relieve()
        return answer

    def _is_behind(self, error: KafkaErrorLike, topic: str, partition: int) -> bool:
        """Whether a broker has not heard yet of a partition that another one lists: each learns of it by itself."""
        if error.name() != "UNKNOWN_TOPIC_OR_PART":
            return False
        for _ in range(_LOOKS_FOR_A_PARTITION):
            found = self.listed(topic).get(topic)
            if found is not None and partition < found.partitions:
                return True
            time.sleep(VISIBLE_POLL_SECONDS)
        return False


def _led(first: ListOffsetsResultInfo, last: ListOffsetsResultInfo) -> tuple[int, bool]:
    """Where a partition's records begin, and whether its leader of then is that of now."""
    epochs = (first.leader_epoch, last.leader_epoch)
    return int(first.offset), None not in epochs and epochs[0] == epochs[1]
