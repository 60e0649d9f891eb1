"""Finding the records of a transaction that can never be sent, and sending the transaction without them.

A refusal by the brokers is one of a whole batch of records, and the client does not say which of them is meant. So a
transaction with a refused record is done again with a client that sends each record in a batch of its own: then a
refusal names its record. And again, with a dead letter in the place of each record that was found, until nothing is
refused any more. A record that was refused only for those beside it in its batch is sent in the end.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from contexture.errors import ContextureError, RejectedError
from contexture.kafka.rows import Row, calls
from contexture.kafka.settings import ClientSettings, Option
from contexture.sending.dead_letter import DeadLetters, RefusedPlace, dead_letter
from contexture.sending.rows_pieces import Piece

if TYPE_CHECKING:
    from contexture.kafka.session import Session
    from contexture.sending.request_limit import RequestLimit
    from contexture.sending.sending_ports import ShardReader

_ONE_BY_ONE: Final[dict[str, Option]] = {"batch.num.messages": 1}


def one_by_one(settings: ClientSettings) -> ClientSettings:
    """The connection with each record in a batch of its own."""
    return ClientSettings(MappingProxyType({**settings.options, **_ONE_BY_ONE}), settings.sources)


class SettingAside:
    """What is known of the refused records of the transaction that is under way.

    Args:
        letters: where they go; None when nothing may be left out.
        reader: the shard.
        requests: what brokers take in a request.

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
        """Whether the try that goes on has shown records, or dead letters, that can't be sent."""
        return bool(self._found or self._letters_refused)

    @property
    def positions(self) -> tuple[int, ...]:
        """The records of the transaction that are left out, in order."""
        return tuple(sorted(self._known))

    def begin_at(self, position: int) -> None:
        """A client begins to send here; what is known of another transaction is forgotten."""
        if position != self._begin:
            self._begin, self.is_careful = position, False
            self._known, self._bare = {}, set()
        self._found, self._letters_refused = {}, {}

    def end(self) -> bool:
        """The transaction is committed; whether the next one needs a client that does not send one by one."""
        was_careful, self.is_careful = self.is_careful, False
        self._known, self._bare = {}, set()
        return was_careful

    def learns(self, refused: ContextureError, position: int, sent_aside: int) -> bool:
        """Whether the transaction should be done again, for more is known of it, or will be.

        Args:
            refused: what ended the last try.
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

    def produce(self, session: Session, piece: Piece) -> None:
        """Hands a piece of the transaction to the client, record by record, dead letters in place of what was refused.

        Raises:
            RejectedError: records can't be sent; `learns` tells whether they were found.
        """
        for index, row in enumerate(calls(piece.rows, self._reader.headers)):
            position = piece.first_position + index
            if position in self._known:
                self._produce_letter(session, position, row)
            elif self._fits_request(piece, index, position):
                session.produce_alone(row, partial(self._found.__setitem__, position))
        if self._found:
            # What the client itself refuses is left out of a transaction that could be committed.
            raise next(iter(self._found.values()))

    def _fits_request(self, piece: Piece, index: int, position: int) -> bool:
        try:
            self._requests.check(piece.rows.slice(index, 1))
        except RejectedError as refused:
            self._found[position] = refused
            return False
        return True

    def _produce_letter(self, session: Session, position: int, row: Row) -> None:
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
        f"{count} records of the shard can't be sent, and publish.max_dead_letters lets {letters.limit} go to "
        f"{letters.topic}; the last: {refused.message}",
        next_step=refused.next_step,
        **refused.context,
    )
