"""Puts back what Kafka committed and readers will never see: records of transactions that the ledger calls done.

A coordinator leaves out the commit marker of a partition that has no leader (`open_transactions`). The records there
wait, and the next marker of their sender decides about them: an abort removes them, after brokers had confirmed
their transaction. So a sender that continues an outbox checks the partitions that had another leader since the
outbox was begun. What is still undecided there is aborted, and everything of done transactions that is in the log and
that readers don't see is sent again. Nothing of the outbox followed it in its partition, so each key keeps its order.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from contexture.kafka.errors import KafkaConfigurationError
from contexture.kafka.interfaces import Place
from contexture.kafka.produce import Row
from contexture.kafka.producer import ProducerSession
from contexture.kafka.reader import TopicRecord
from contexture.sending.dead_letters import position_of
from contexture.sending.interfaces import HiddenPort, OffsetSpan
from contexture.sending.ledger import LedgerEntry
from contexture.sending.open_transactions import LOOK_AGAIN_SECONDS, hidden_records_error, places_until
from contexture.sending.pieces import split_by_transaction, topics_until
from contexture.sending.shard_records import Fingerprint, ShardRecords, TopicKey, fingerprint

_LOG: Final = logging.getLogger(__name__)
# What is held in memory of a part is some 300 bytes a record.
_RECORDS_AT_ONCE: Final = 1_000_000

Spans = Mapping[Place, OffsetSpan]


@dataclass(slots=True)
class _Found:
    """What some partitions hold: of each key the newest value that readers see, and what they don't see."""

    newest: dict[TopicKey, Fingerprint] = field(default_factory=dict)
    unseen: set[tuple[str, Fingerprint]] = field(default_factory=set)


@dataclass
class Restoration:
    """Restores the records of one shard; another sender's transaction hides them for `longest_open_seconds` at most."""

    records: ShardRecords
    hidden: HiddenPort
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    longest_open_seconds: float

    def restore(self, session: ProducerSession, done: LedgerEntry) -> str | None:
        """Does one step towards what readers should see; a new client then checks whether it was enough.

        `done` is the ledger's row of this outbox: what comes before its position is committed.

        Returns:
            What was done; None where readers see all of it.

        Raises:
            RetriableError: another sender's transaction hides records for longer than any may be open.
            SendAgainError, FencedError, KafkaConfigurationError: as of a transaction.
        """
        topics = topics_until(self.records.reader.batches(0), done.position)
        topics |= (
            {self.records.dead_letter_topic}
            if self.records.dead_letter_topic is not None and done.dead_letters
            else set()
        )
        spans = self.hidden.moved(topics, done.since)
        if not spans:
            return None
        undecided = self._undecided(spans, done)
        if undecided:
            self._warn(f"left {len(undecided)} partitions undecided, the first is {undecided[0]}")
            session.abort_in(undecided, self.records.mark)
            return f"aborted what Kafka left undecided in {len(undecided)} partitions"
        positions, letters = self._lost(spans, done)
        if not positions and not letters:
            return None
        self._warn(f"removed {len(positions) + len(letters)} records of it for readers: they are sent again")
        self._send(session, positions, letters)
        return f"sent {len(positions) + len(letters)} records again that Kafka removed after they were committed"

    def is_short(self, topics: Collection[str], places: Collection[Place] | None, done: LedgerEntry) -> bool:
        """Whether readers will never see some records of done transactions in partitions that hide nothing any more.

        A sender that takes a living one for dead may have aborted them. With `places` None it checks all partitions.
        """
        spans = self.hidden.moved(topics, done.since)
        return any(self._lost({at: span for at, span in spans.items() if places is None or at in places}, done))

    def _undecided(self, spans: Spans, done: LedgerEntry) -> list[Place]:
        """Partitions whose first hidden record is of this shard, once no other sender's transaction hides any."""
        started = self.clock()
        ends = {place: end for place, (_, end) in spans.items()}
        while hiding := places_until(self.hidden, ends):
            own = self.records.own(self.hidden.firsts(hiding), self.records.before(done.position))
            if own:
                return own
            ends = {place: ends[place] for place in hiding}
            if self.clock() - started >= self.longest_open_seconds:
                raise hidden_records_error(len(hiding), *min(hiding))
            self.sleep(LOOK_AGAIN_SECONDS)
        return []

    def _lost(self, spans: Spans, done: LedgerEntry) -> tuple[list[int], list[TopicRecord]]:
        """Returns positions of records, and dead letters, that are in the log and that readers don't see."""
        try:
            return self._lost_records(spans, done), self._lost_letters(spans, done)
        except KafkaConfigurationError as refused:
            _LOG.warning(
                "shard %d: %d partitions had no leader for a moment, and this user may not see whether records were "
                "lost there (%s): allow READ on the topics, then run contexture verify",
                self.records.reader.shard,
                len(spans),
                refused.message,
            )
            return [], []

    def _lost_records(self, spans: Spans, done: LedgerEntry) -> list[int]:
        positions: list[int] = []
        keyless: dict[int, tuple[str, Fingerprint]] = {}
        for part in _parts(
            {place: span for place, span in spans.items() if place[0] != self.records.dead_letter_topic}
        ):
            found = self._found(part)
            if found.unseen:
                keyed, others = self._lost_of(found, done)
                positions += keyed
                keyless |= others
        return sorted([*positions, *self._lost_keyless(spans, keyless)])

    def _found(self, spans: Spans) -> _Found:
        found = _Found()
        for record, is_seen in self.hidden.copies(spans):
            sign = fingerprint(record.key, record.value)
            if not is_seen:
                found.unseen.add((record.topic, sign))
            elif record.key is not None:
                found.newest[record.topic, record.key] = sign
        return found

    def _lost_of(self, found: _Found, done: LedgerEntry) -> tuple[list[int], dict[int, tuple[str, Fingerprint]]]:
        """Of each key what follows the last record that readers see; all that has no key is looked for later."""
        lost: defaultdict[TopicKey, list[int]] = defaultdict(list)
        keyless: dict[int, tuple[str, Fingerprint]] = {}
        aside = frozenset(done.dead_letters)
        topics = {topic for topic, _ in found.unseen}
        for position, topic, sign in self.records.fingerprints(self.records.before(done.position), topics):
            if position >= done.position:
                break
            key = sign[0]
            if key is not None and found.newest.get((topic, key)) == sign:
                lost.pop((topic, key), None)
            elif position not in aside and (topic, sign) in found.unseen:
                if key is None:
                    keyless[position] = topic, sign
                else:
                    lost[topic, key].append(position)
        return [position for each in lost.values() for position in each], keyless

    def _lost_keyless(self, spans: Spans, keyless: Mapping[int, tuple[str, Fingerprint]]) -> list[int]:
        """Any partition may hold them: those that no reader sees in any."""
        sought = set(keyless.values())
        wanted = {place: span for place, span in spans.items() if place[0] in {topic for topic, _ in sought}}
        if not sought:
            return []
        for record, is_seen in self.hidden.copies(wanted):
            if is_seen:
                sought.discard((record.topic, fingerprint(record.key, record.value)))
        return [position for position, each in keyless.items() if each in sought]

    def _lost_letters(self, spans: Spans, done: LedgerEntry) -> list[TopicRecord]:
        wanted = {place: span for place, span in spans.items() if place[0] == self.records.dead_letter_topic}
        unseen: dict[int, TopicRecord] = {}
        seen: set[int] = set()
        for record, is_seen in self.hidden.copies(wanted) if wanted else ():
            position = position_of(record, self.records.reader.outbox_id, self.records.reader.shard)
            if position in done.dead_letters:
                seen |= {position} if is_seen else set()
                unseen[position] = record
        return [record for position, record in sorted(unseen.items()) if position not in seen]

    def _send(self, session: ProducerSession, positions: Collection[int], letters: Collection[TopicRecord]) -> None:
        wanted = frozenset(positions)
        session.begin()
        for piece in split_by_transaction(self.records.reader.batches(min(wanted))) if wanted else ():
            rows = self.records.encoded(piece).rows
            mask = pa.array([position in wanted for position in rows.column("position").to_pylist()], pa.bool_())
            chosen = rows.filter(mask)
            if chosen.num_rows:
                session.produce(chosen, self.records.reader.headers)
            if piece.first_position + piece.rows.num_rows > max(wanted):
                break
        for letter in letters:
            row: Row = (letter.topic, letter.value, letter.key, -1, None, None, 0, list(letter.headers))
            session.produce_alone(row, _raise)
        session.commit()

    def _warn(self, what: str) -> None:
        _LOG.warning(
            "shard %d: a partition had no leader while Kafka committed, which %s", self.records.reader.shard, what
        )


def _parts(spans: Spans) -> Iterator[dict[Place, OffsetSpan]]:
    """Some partitions at a time: what is held of them grows with their records."""
    part: dict[Place, OffsetSpan] = {}
    records = 0
    for place, (start, end) in sorted(spans.items()):
        if part and records + end - start > _RECORDS_AT_ONCE:
            yield part
            part, records = {}, 0
        part[place] = OffsetSpan(start, end)
        records += end - start
    if part:
        yield part


def _raise(refused: Exception) -> None:
    raise refused
