"""The body of an answer, unpacked as it comes, within a bound, and known to be whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from contexture.ngsi.http_connection import HttpConnection
from contexture.sdmx.registries.errors import IncompleteReplyError, ReplyTooLargeError

_AT_ONCE = 1 << 20
_GZIP = 31


def unpacked(pieces: Iterable[bytes], encoding: str, who: str) -> Iterator[bytes]:
    """The content of a body.

    Args:
        pieces: as they came.
        encoding: Content-Encoding.
        who: for messages.

    Raises:
        IncompleteReplyError: it is packed otherwise than asked for, or ends before its packing does.
    """
    if encoding.strip().lower() in {"", "identity"}:
        yield from pieces
        return
    if encoding.strip().lower() not in {"gzip", "x-gzip"}:
        raise IncompleteReplyError(
            f"{who} packed its answer with {encoding[:20]!r}",
            next_step="let it, or the proxy before it, answer with gzip or unpacked, as it is asked to",
        )
    yield from _gunzipped(pieces, who)


def _gunzipped(pieces: Iterable[bytes], who: str) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        for piece in pieces:
            waiting = piece
            while waiting:
                # A few bytes may stand for gigabytes.
                yield unpacker.decompress(waiting, _AT_ONCE)
                waiting = unpacker.unconsumed_tail
                if unpacker.eof and (waiting := unpacker.unused_data):
                    unpacker = zlib.decompressobj(_GZIP)
        yield unpacker.flush()
    except zlib.error as error:
        raise _broken(who) from error
    if not unpacker.eof:
        raise _broken(who)


def bounded(pieces: Iterable[bytes], limit_bytes: int, connection: HttpConnection) -> Iterator[bytes]:
    """The pieces, as long as they are not too many.

    Raises:
        ReplyTooLargeError: they are.
    """
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit_bytes:
            raise ReplyTooLargeError(
                f"an answer of {connection.WHO} at {connection.address} is larger than {limit_bytes:,} bytes",
                next_step="raise reply_bytes in the extra of the registry's connection",
            )
        yield piece


def _broken(who: str) -> IncompleteReplyError:
    return IncompleteReplyError(
        f"an answer of {who} ends before it is whole", next_step="look into the registry's log; the run is retried"
    )
