"""The body of an answer, unpacked as it comes, within a bound, and known to be whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from contexture.ngsi.content_encoding import BrokenBodyError, CodingRefusedError, decode_content
from contexture.ngsi.http_connection import HttpConnection
from contexture.sdmx.registries.errors import IncompleteReplyError, ReplyTooLargeError


def unpacked(pieces: Iterable[bytes], encoding: str, who: str) -> Iterator[bytes]:
    """The content of a body.

    Args:
        pieces: as they came.
        encoding: Content-Encoding.
        who: for messages.

    Raises:
        IncompleteReplyError: it is packed otherwise than asked for, or ends before its packing does.
    """
    try:
        yield from decode_content(pieces, encoding, who)
    except (CodingRefusedError, BrokenBodyError) as error:
        raise IncompleteReplyError(error.message, next_step=error.next_step) from None


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
