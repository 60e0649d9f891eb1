"""Dead letters: finding the records of a transaction that can never be sent, and sending it without them.

Brokers refuse a whole batch of records, and the client does not say which of its records is the cause. So a
transaction with a refused record is repeated with a client that sends each record in a batch of its own: then a
refusal names its record. It is repeated again, with a dead letter in the place of each record that was found, until
nothing is refused any more. A record that was refused only because of others in its batch is sent in the end.

A broker closes the connection on a request above its `socket.request.max.bytes`, and a client can only try again: the
send would end as if the brokers were away. So a record that could be too large is compressed and compared before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from contexture.errors import ContextureError, RejectedError
from contexture.kafka.admin import TopicAdmin
from contexture.kafka.interfaces import Headers
from contexture.kafka.produce import Row, produce_arguments
from contexture.kafka.producer import record_name
from contexture.kafka.reader import TopicRecord
from contexture.kafka.settings import ClientSettings, Option
from contexture.sending.pieces import TransactionChunk

if TYPE_CHECKING:
    from contexture.kafka.broker_wait import BrokerWait
    from contexture.kafka.producer import ProducerSession
    from contexture.sending.interfaces import ShardReader

HEADER: Final = "contexture_refused_"
"""What the names of the headers that say why begin with."""

_ANY_PARTITION: Final = -1
_NOW: Final = 0
_LONGEST_KEY: Final = 65_536


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Where records go that can never be sent.

    Attributes:
        topic: the dead-letter topic; it must be there.
        limit: how many of a shard may go there, at most: more of them are a fault of configuration.
    """

    topic: str
    limit: int


@dataclass(frozen=True, slots=True)
class RefusedPlace:
    """The position of a refused record: its outbox, the shard, and its number in it."""

    outbox: str
    shard: int
    position: int


def dead_letter(topic: str, row: Row, refused: RejectedError, place: RefusedPlace, *, bare: bool = False) -> Row:
    """Returns the dead letter of a record, as arguments of the client's `produce`.

    It has the record's key, value and headers, and headers that say why (`contexture_refused_...`); no partition and
    no time of its own, for these may be what was refused.

    Args:
        topic: the dead-letter topic.
        row: the record.
        refused: why it can't be sent.
        place: its outbox, shard and position.
        bare: without its value, and without a key of more than 64 KiB: instead their sizes and SHA-256.
    """
    meant, value, key = str(row[0]), cast("bytes | None", row[1]), cast("bytes | None", row[2])
    given = cast("Headers | None", row[7] if len(row) > 7 else None)
    why = {
        "error": str(refused.context.get("error", type(refused).__name__)),
        "message": refused.message,
        "by": "broker" if refused.context.get("status") == 3 else "client",
        "topic": meant,
        "outbox": place.outbox,
        "shard": str(place.shard),
        "position": str(place.position),
        **_time(row),
        **_left_out("value", value, leave=bare),
        **_left_out("key", key, leave=bare and _is_long(key)),
    }
    if value is None:
        why["value"] = "tombstone"
    headers = [*(given or ()), *((f"{HEADER}{name}", text.encode()) for name, text in why.items())]
    kept_value = None if "value_sha256" in why else value
    kept_key = None if "key_sha256" in why else key
    return topic, kept_value, kept_key, _ANY_PARTITION, None, None, _NOW, headers


def split_dead_letters(key: bytes | None, value: bytes | None) -> tuple[tuple[bytes | None, bytes | None], ...]:
    """Key and value of a record's dead letter: as they were, or as a bare one has them."""
    return (key, value), (None if _is_long(key) else key, None)


def dead_letters_found(records: Iterable[TopicRecord], outbox: str) -> dict[int, frozenset[int]]:
    """Returns the positions of an outbox's records, by shard, that are among the records of a dead-letter topic."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for record in records:
        reasons = _reasons(record)
        if reasons.get(f"{HEADER}outbox") == outbox:
            found[int(reasons[f"{HEADER}shard"])].add(int(reasons[f"{HEADER}position"]))
    return {shard: frozenset(positions) for shard, positions in found.items()}


def position_of(letter: TopicRecord, outbox: str, shard: int) -> int | None:
    """Returns the position of the record that a dead letter represents; None where it is of another outbox or shard."""
    reasons = _reasons(letter)
    if (reasons.get(f"{HEADER}outbox"), reasons.get(f"{HEADER}shard")) != (outbox, str(shard)):
        return None
    return int(reasons[f"{HEADER}position"])


def _reasons(letter: TopicRecord) -> dict[str, str]:
    return {name: (value or b"").decode() for name, value in letter.headers if name.startswith(HEADER)}


def _is_long(key: bytes | None) -> bool:
    return len(key or b"") > _LONGEST_KEY


def _time(row: Row) -> dict[str, str]:
    return {"timestamp": str(row[6])} if len(row) > 6 and row[6] else {}


def _left_out(name: str, content: bytes | None, *, leave: bool) -> dict[str, str]:
    if content is None or not leave:
        return {}
    return {f"{name}_bytes": str(len(content)), f"{name}_sha256": sha256(content).hexdigest()}


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that can never be sent.

    Attributes:
        at: when it was sent to the dead-letter topic.
        error: Kafka's name of it.
        message: what was said.
        by: `client` or `broker`.
        topic: which it should have gone to.
        outbox, shard, position: where the record is stored.
        key: its key; None where it has none, or one that was too long to be kept.
        value_bytes: the size of its value; None for a tombstone, and where the letter does not contain the size.
        place: partition and offset of the dead letter.
    """

    at: datetime | None
    error: str
    message: str
    by: str
    topic: str
    outbox: str
    shard: int
    position: int
    key: bytes | None
    value_bytes: int | None
    place: tuple[int, int]


def refused_records(records: Iterable[TopicRecord]) -> Iterator[RefusedRecord]:
    """Yields what the records of a dead-letter topic show; what another party wrote there is left out."""
    for record in records:
        reasons = {
            name.removeprefix(HEADER): (value or b"").decode(errors="replace")
            for name, value in record.headers
            if name.startswith(HEADER)
        }
        if (
            {"outbox", "shard", "position"} <= reasons.keys()
            and reasons["shard"].isdecimal()
            and reasons["position"].isdecimal()
        ):
            yield _refused(record, reasons)


def _refused(record: TopicRecord, reasons: dict[str, str]) -> RefusedRecord:
    return RefusedRecord(
        at=None if record.timestamp_ms is None else datetime.fromtimestamp(record.timestamp_ms / 1000, UTC),
        error=reasons.get("error", ""),
        message=reasons.get("message", ""),
        by=reasons.get("by", ""),
        topic=reasons.get("topic", ""),
        outbox=reasons["outbox"],
        shard=int(reasons["shard"]),
        position=int(reasons["position"]),
        key=record.key,
        value_bytes=_size(record, reasons),
        place=(record.partition, record.offset),
    )


def _size(record: TopicRecord, reasons: dict[str, str]) -> int | None:
    if record.value is not None:
        return len(record.value)
    given = reasons.get("value_bytes", "")
    return int(given) if given.isdecimal() else None


_NAME: Final = "socket.request.max.bytes"
# Half of Kafka's default (100 MiB): brokers are not asked because of anything smaller.
_ASKED_ABOVE_BYTES: Final = 52_428_800
# The bytes of a request that are no record.
_AROUND_BYTES: Final = 4_096


@dataclass
class RequestLimit:
    """The brokers' limit of a request, requested when the first record above `asked_above_bytes` comes."""

    settings: ClientSettings
    broker_wait: BrokerWait
    asked_above_bytes: int = _ASKED_ABOVE_BYTES

    @cached_property
    def bytes(self) -> int | None:
        """The lowest limit of the brokers; None when this user may not know."""
        return TopicAdmin(self.settings, self.broker_wait).lowest_of_brokers(_NAME)

    def check(self, rows: pa.RecordBatch) -> None:
        """Checks that each record fits into a request, compressed as the client will compress it.

        Raises:
            RejectedError: one does not (`.context["status"]` is 2: it did not leave).
        """
        lengths = pc.binary_length(cast("pa.BinaryArray", rows.column("value")))
        if (pc.max(lengths).as_py() or 0) <= self.asked_above_bytes or self.bytes is None:
            return
        room = self.bytes - _AROUND_BYTES
        for index in pc.indices_nonzero(pc.greater(lengths.fill_null(0), room)).to_pylist():
            size = self._compressed(cast("pa.BinaryScalar", rows.column("value")[index]))
            if size > room:
                raise _too_large(rows, index, size, self.bytes)

    def _compressed(self, value: pa.BinaryScalar) -> int:
        codec = str(self.settings.producer()["compression.type"])
        data = value.as_buffer()
        if codec == "none":
            return int(data.size)
        return int(pa.compress(data, codec=codec).size)


def _too_large(rows: pa.RecordBatch, index: int, size: int, limit: int) -> RejectedError:
    topic, key = str(rows.column("topic")[index].as_py()), rows.column("key")[index].as_py()
    return RejectedError(
        f"{record_name(key)} has {size} bytes compressed, and the brokers accept {limit} in a request ({_NAME})",
        next_step=f"raise {_NAME} of the brokers, choose a compression.type that makes it smaller, or leave this "
        "object out",
        topic=topic,
        status=2,
        error="MSG_SIZE_TOO_LARGE",
    )


_ONE_BY_ONE: Final[dict[str, Option]] = {"batch.num.messages": 1}


def one_by_one(settings: ClientSettings) -> ClientSettings:
    """Returns the connection with each record in a batch of its own."""
    return ClientSettings(MappingProxyType({**settings.options, **_ONE_BY_ONE}), settings.sources)


class DeadLetterSearch:
    """The refused records of the current transaction, as far as they are known; without `letters` none may be left out.

    Attributes:
        is_careful: whether the transaction is sent record by record.
    """

    def __init__(self, letters: DeadLetters | None, reader: ShardReader, requests: RequestLimit) -> None:
        self._letters = letters
        self._reader = reader
        self._requests = requests
        self._begin = 0
        self.is_careful = False
        self._known: dict[int, RejectedError] = {}
        self._found: dict[int, RejectedError] = {}
        self._bare: set[int] = set()
        self._letters_refused: dict[int, RejectedError] = {}

    @property
    def has_found(self) -> bool:
        """Whether the current attempt has shown records, or dead letters, that can't be sent."""
        return bool(self._found or self._letters_refused)

    @property
    def positions(self) -> tuple[int, ...]:
        """The records of the transaction that are left out, in order."""
        return tuple(sorted(self._known))

    def begin_at(self, position: int) -> None:
        """Starts with a new client at a position; what is known of another transaction is dropped."""
        if position != self._begin:
            self._begin, self.is_careful = position, False
            self._known, self._bare = {}, set()
        self._found, self._letters_refused = {}, {}

    def end(self) -> bool:
        """Ends the committed transaction; returns whether the next one needs a client that sends whole batches."""
        was_careful, self.is_careful = self.is_careful, False
        self._known, self._bare = {}, set()
        return was_careful

    def narrow(self, refused: ContextureError, position: int, sent_aside: int) -> bool:
        """Narrows down what was refused; returns whether the transaction should be repeated.

        Args:
            refused: the error that ended the last attempt.
            position: where the transaction begins.
            sent_aside: records of this shard that went to the dead-letter topic with earlier transactions.

        Raises:
            RejectedError: more can't be sent than may be left out.
        """
        if self._letters is None:
            return False
        if not self.is_careful:
            self.is_careful, self._begin = True, position
            return True
        new_bare = set(self._letters_refused) - self._bare
        learned = bool(new_bare or self._found)
        self._known |= self._found
        self._bare |= new_bare
        self._found = {}
        if sent_aside + len(self._known) > self._letters.limit:
            raise _too_many(refused, sent_aside + len(self._known), self._letters)
        return learned

    def produce(self, session: ProducerSession, piece: TransactionChunk) -> None:
        """Hands a piece of the transaction to the client, record by record, dead letters in place of what was refused.

        Raises:
            RejectedError: records can't be sent; `narrow` shows whether they were found.
        """
        for index, row in enumerate(produce_arguments(piece.rows, self._reader.headers)):
            position = piece.first_position + index
            if position in self._known:
                self._produce_letter(session, position, row)
            elif self._fits_request(piece, index, position):
                session.produce_alone(row, partial(self._found.__setitem__, position))
        if self._found:
            # What the client itself refuses is left out of a transaction that could be committed.
            raise next(iter(self._found.values()))

    def _fits_request(self, piece: TransactionChunk, index: int, position: int) -> bool:
        try:
            self._requests.check(piece.rows.slice(index, 1))
        except RejectedError as refused:
            self._found[position] = refused
            return False
        return True

    def _produce_letter(self, session: ProducerSession, position: int, row: Row) -> None:
        assert self._letters is not None  # nothing is known otherwise
        refused = self._known[position]
        # What did not leave this client can't leave it with more headers.
        if refused.context.get("status") == 2:
            self._bare.add(position)
        place = RefusedPlace(self._reader.outbox_id, self._reader.shard, position)
        letter = dead_letter(self._letters.topic, row, refused, place, bare=position in self._bare)
        session.produce_alone(letter, partial(self._letters_refused.__setitem__, position))
        if position in self._letters_refused:
            raise self._letters_refused[position]


def _too_many(refused: ContextureError, count: int, letters: DeadLetters) -> RejectedError:
    return RejectedError(
        f"{count} records of the shard cannot be sent, and publish.max_dead_letters allows {letters.limit} in "
        f"{letters.topic}; the last: {refused.message}",
        next_step=refused.next_step,
        **refused.context,
    )
